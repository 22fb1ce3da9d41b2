package recorder

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"image"
	"image/png"
	"io"
	"os"
	"path/filepath"
)

// Still writes the next frame of the film, with the same masks, as a PNG at path, whole or not at all. It takes a little longer
// than Hold. Errors are [*Error]: ErrStopped when the film ends before, ErrDiskFull, ErrWrite.
func (f *Film) Still(ctx context.Context, path string) error {
	c := make(chan *picture, 1)
	f.mu.Lock()
	if f.ended {
		f.mu.Unlock()
		return fail("still", ErrStopped, f.Err())
	}
	f.stills = append(f.stills, c)
	f.mu.Unlock()
	select {
	case <-ctx.Done():
		return fail("still", ErrStopped, ctx.Err())
	case p, ok := <-c:
		if !ok {
			return fail("still", ErrStopped, f.Err())
		}
		return writePNG(path, p.rgba())
	}
}

// rgba turns a picture's pixels in place.
func (p *picture) rgba() *image.RGBA {
	for i := 0; i+4 <= len(p.pix); i += 4 {
		p.pix[i], p.pix[i+2], p.pix[i+3] = p.pix[i+2], p.pix[i], 0xff
	}
	return &image.RGBA{Pix: p.pix, Stride: p.w * 4, Rect: image.Rect(0, 0, p.w, p.h)}
}

func writePNG(path string, img image.Image) error {
	err := writeWhole(path, func(w io.Writer) error {
		return (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(w, img)
	})
	if err != nil {
		return fail("still", writeKind(err), err)
	}
	return nil
}

// writeWhole makes a file that is complete and on the disk, or absent. A file that exists already is an error.
func writeWhole(path string, fill func(io.Writer) error) (err error) {
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		return &os.PathError{Op: "create", Path: path, Err: os.ErrExist}
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".partial-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if err := fill(f); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Chmod(0o644); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}

func hashFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
