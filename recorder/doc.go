// Package recorder films a desktop and takes stills of it, with secrets masked before anything reaches the disk.
//
// A film shows two things side by side: the desk as a person sees it, and the own pixels of one covered window, read through the X
// server without the engine that drives it. A code and a caption beside them say in every frame which run, row and commit it belongs to, and when.
//
//	film, err := recorder.StartFilm(ctx, recorder.FilmConfig{ ... })
//	film.Target(window, true)       // once the browser has a window
//	err = film.Still(ctx, "after.png")
//	report, err := film.Stop(ctx)   // drains, ends the encoder, reports the first thing that went wrong
//	check, err := recorder.CheckFilm(ctx, report.Path, report.SidePath, recorder.Expect{})
//
// Frames wait in memory for [Hold] and are masked with what the mask provider knows of the time before and after; where
// it knows nothing, the whole window is black. CheckFilm decodes the finished film and returns facts, not a verdict.
//
// Times are nanoseconds of CLOCK_MONOTONIC, rectangles are pixels. Films need an X server and ffmpeg; elsewhere StartFilm
// answers [ErrUnsupported]. recorder/desktop, the event log, and recorder/x11, its client, are packages of their own.
package recorder
