package recorder

import (
	"context"
	"fmt"
	"image"
	"time"

	"github.com/engine-acceptance/acceptance/redaction"
	"github.com/kbinani/screenshot"
)

// DesktopStill takes a still of the first display that the operating system names, for systems where no film can be made. It is the portable fallback:
// slower than [Film.Still], without pointer, pane and code. The picture waits in memory for [Hold] and is masked like a frame of a film; masks that knows nothing, or
// is nil, make it all black. On X11 the display is that of the environment. Errors are [*Error].
func DesktopStill(ctx context.Context, path string, masks MaskProvider, chrome func() []redaction.Rect) error {
	const op = "still"
	if screenshot.NumActiveDisplays() < 1 {
		return fail(op, ErrUnsupported, fmt.Errorf("no display"))
	}
	var rects []redaction.Rect
	if chrome != nil {
		rects = append(rects, chrome()...)
	}
	at := monotonic()
	img, err := screenshot.CaptureDisplay(0)
	if err != nil {
		return fail(op, ErrUnsupported, err)
	}
	after := monotonic()
	t := time.NewTimer(Hold)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return fail(op, ErrStopped, ctx.Err())
	case <-t.C:
	}
	if chrome != nil {
		rects = append(rects, chrome()...)
	}
	b := img.Bounds()
	whole := redaction.Rect{W: b.Dx(), H: b.Dy()}
	known := false
	if masks != nil {
		var m []redaction.Rect
		if m, known = masks.Masks(at-int64(Hold), after+int64(Hold)); known {
			rects = append(rects, m...)
		}
	}
	if !known {
		rects = []redaction.Rect{whole}
	}
	maskRGBA(img, rects)
	return writePNG(path, img)
}

// maskRGBA blackens rects, in pixels from the picture's corner. Black is the same in both orders of bytes.
func maskRGBA(img *image.RGBA, rects []redaction.Rect) {
	b := img.Bounds()
	redaction.Mask(img.Pix, b.Dx(), b.Dy(), img.Stride, rects, redaction.Black)
}
