package redaction

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ScanOptions of [Scanner.ScanDir]; the zero value is the strict default.
type ScanOptions struct {
	// MaxUnpackedBytes bounds what is unpacked from one gzip or zip file; 0 means 256 MiB. What is beyond it is listed in
	// [ScanReport.NotLookedInto].
	MaxUnpackedBytes int64
}

// Oddity is something in the tree that is no plain file or directory, or a part of a file that was not looked into.
type Oddity struct {
	File   string `json:"file"`
	Reason string `json:"reason"`
}

// ScanReport is what a scan of a tree saw. Lists are sorted by file.
type ScanReport struct {
	Encodings     string    `json:"encodings"` // EncodingsVersion
	Files         int       `json:"files"`     // regular files read to their end
	Bytes         int64     `json:"bytes"`     // of those
	Unpacked      int64     `json:"unpacked_bytes"`
	Findings      []Finding `json:"findings"`
	Truncated     bool      `json:"truncated"` // there are more than MaxFindings
	Oddities      []Oddity  `json:"oddities"`  // links, devices, sockets: listed, never followed or opened
	NotLookedInto []Oddity  `json:"not_looked_into"`
	ControlFound  bool      `json:"control_found"`
	ControlMissed []string  `json:"control_missed,omitempty"` // ID/ENCODING
}

// ScanDir looks for the canaries in every regular file under root: in the bytes, in the names, in the targets of links and in the members of
// gzip and zip files. Pixels of pictures and films are not read (their bytes and metadata are); that is listed. It first looks for its
// control, in memory, through the same code.
//
// The report is complete only when the error is nil. Errors: [ErrControlMissed], [ErrNothingScanned] (no regular file), or the first file that could not be
// read to its end, after all others were.
func (s *Scanner) ScanDir(ctx context.Context, root string, opts ScanOptions) (ScanReport, error) {
	rep := ScanReport{Encodings: EncodingsVersion, Findings: []Finding{}, Oddities: []Oddity{}, NotLookedInto: []Oddity{}}
	if opts.MaxUnpackedBytes <= 0 {
		opts.MaxUnpackedBytes = 256 << 20
	}
	missed, err := s.checkControl(ctx)
	if err != nil {
		return rep, err
	}
	rep.ControlMissed = missed
	rep.ControlFound = len(missed) == 0
	if !rep.ControlFound {
		return rep, fmt.Errorf("scan %s: %w: %s", root, ErrControlMissed, strings.Join(missed, ", "))
	}
	dir, err := os.OpenRoot(root)
	if err != nil {
		return rep, fmt.Errorf("scan: %w", err)
	}
	defer dir.Close()
	var firstErr error
	fail := func(err error) {
		if firstErr == nil {
			firstErr = err
		}
	}
	err = fs.WalkDir(dir.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if cerr := ctx.Err(); cerr != nil {
			return cerr
		}
		if name != "." {
			s.inText(ctx, &rep, filepath.Base(name), name)
		}
		if err != nil {
			fail(fmt.Errorf("scan %s: %w", name, err))
			return nil
		}
		switch t := d.Type(); {
		case t.IsDir():
		case t.IsRegular():
			if err := s.scanFile(ctx, dir, name, opts, &rep); err != nil {
				fail(err)
			}
		case t&fs.ModeSymlink != 0:
			rep.Oddities = append(rep.Oddities, Oddity{s.publicName(name), "symbolic link"})
			target, err := dir.Readlink(filepath.FromSlash(name))
			if err != nil {
				fail(fmt.Errorf("scan %s: %w", name, err))
			}
			s.inText(ctx, &rep, target, name)
		default:
			rep.Oddities = append(rep.Oddities, Oddity{s.publicName(name), t.String()})
		}
		return nil
	})
	for i := range rep.Findings {
		rep.Findings[i].File = s.publicName(rep.Findings[i].File)
	}
	if len(rep.Findings) > MaxFindings {
		rep.Findings, rep.Truncated = rep.Findings[:MaxFindings], true
	}
	switch {
	case err != nil:
		return rep, fmt.Errorf("scan: %w", err)
	case firstErr != nil:
		return rep, firstErr
	case rep.Files == 0:
		return rep, fmt.Errorf("scan: %w", ErrNothingScanned)
	}
	return rep, nil
}

// inText scans a name or a link target.
func (s *Scanner) inText(ctx context.Context, rep *ScanReport, text, file string) {
	found, err := s.Scan(ctx, strings.NewReader(text), file)
	if err != nil {
		return // only ctx can fail here, and the walk sees that itself
	}
	for _, f := range found {
		f.Offset = -1
		rep.Findings = append(rep.Findings, f)
	}
}

// publicName returns name with every canary in it replaced, so that a finding about a name does not repeat the leak.
func (s *Scanner) publicName(name string) string {
	low := lowerASCII([]byte(name))
	out := []byte(name)
	for _, n := range s.raw.needles {
		for {
			i := bytes.Index(low, n.lit)
			if i < 0 {
				break
			}
			with := []byte("[" + s.targets[n.canary].ID + "]")
			out = slices.Replace(out, i, i+len(n.lit), with...)
			low = slices.Replace(low, i, i+len(n.lit), bytes.ToLower(with)...)
		}
	}
	return string(out)
}

func (s *Scanner) scanFile(ctx context.Context, dir *os.Root, name string, opts ScanOptions, rep *ScanReport) error {
	f, err := dir.Open(filepath.FromSlash(name))
	if err != nil {
		return fmt.Errorf("scan: %w", err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return fmt.Errorf("scan: %w", err)
	}
	if !st.Mode().IsRegular() {
		return fmt.Errorf("scan %s: it changed into %s while it was opened", s.publicName(name), st.Mode().Type())
	}
	var head [16]byte
	n, err := f.ReadAt(head[:], 0)
	if err != nil && err != io.EOF {
		return fmt.Errorf("scan: %w", err)
	}
	found, size, err := s.scan(ctx, f, name)
	rep.addFound(s, found)
	if err != nil {
		return err
	}
	rep.Files++
	rep.Bytes += size
	notInto := func(reason string) {
		rep.NotLookedInto = append(rep.NotLookedInto, Oddity{s.publicName(name), reason})
	}
	switch h := head[:n]; {
	case bytes.HasPrefix(h, []byte{0x1f, 0x8b}):
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return fmt.Errorf("scan: %w", err)
		}
		zr, err := gzip.NewReader(f)
		if err != nil {
			notInto("not readable as gzip")
			return nil
		}
		s.scanMember(ctx, zr, name+"!gzip", opts.MaxUnpackedBytes, rep, notInto)
	case bytes.HasPrefix(h, []byte("PK\x03\x04")), bytes.HasPrefix(h, []byte("PK\x05\x06")):
		zr, err := zip.NewReader(f, st.Size())
		if err != nil {
			notInto("not readable as zip")
			return nil
		}
		left := opts.MaxUnpackedBytes
		for _, m := range zr.File {
			s.inText(ctx, rep, m.Name, name+"!"+m.Name)
			mr, err := m.Open()
			if err != nil {
				notInto("member not readable: " + s.publicName(m.Name))
				continue
			}
			left -= s.scanMember(ctx, mr, name+"!"+m.Name, left, rep, notInto)
			mr.Close()
		}
	case bytes.HasPrefix(h, []byte("\x89PNG")), bytes.HasPrefix(h, []byte("\xff\xd8\xff")), bytes.HasPrefix(h, []byte("GIF8")):
		notInto("pixels of a picture")
	case n >= 8 && string(h[4:8]) == "ftyp", bytes.HasPrefix(h, []byte{0x1a, 0x45, 0xdf, 0xa3}):
		notInto("pixels of a film")
	case bytes.HasPrefix(h, []byte("BZh")), bytes.HasPrefix(h, []byte("\xfd7zXZ")), bytes.HasPrefix(h, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		notInto("compressed by a method that is not unpacked")
	}
	return nil
}

func (rep *ScanReport) addFound(s *Scanner, found []Finding) {
	for _, f := range found {
		if f.CanaryID != s.control.ID {
			rep.Findings = append(rep.Findings, f)
		}
	}
}

// scanMember scans what r unpacks to, at most limit bytes, and returns how many it was.
func (s *Scanner) scanMember(ctx context.Context, r io.Reader, name string, limit int64, rep *ScanReport, notInto func(string)) int64 {
	lr := &io.LimitedReader{R: r, N: max(limit, 0) + 1}
	found, n, err := s.scan(ctx, lr, name)
	rep.addFound(s, found)
	rep.Unpacked += n
	switch {
	case errors.Is(err, ctx.Err()) && ctx.Err() != nil:
	case err != nil:
		notInto("member damaged: " + s.publicName(name))
	case lr.N <= 0:
		notInto("member larger than the limit: " + s.publicName(name))
	}
	return n
}
