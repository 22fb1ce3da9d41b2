//go:build unix

package verify_test

import (
	"crypto/sha256"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/engine-acceptance/acceptance/evidence/verify"
)

// BenchmarkVerify reports, as "x_sha256", the time of a verification as a multiple of one sha256 after the other over the same files, and, as
// "x_sha256sum", as a multiple of the command sha256sum over them, where there is one; all are taken in this run. The number to reach is 2.
func BenchmarkVerify(b *testing.B) {
	dir := filepath.Join(b.TempDir(), "b")
	written(b, dir, nil, 2<<20)
	names := files(b, dir)
	var size int64
	hash := func() {
		size = 0
		for _, name := range names {
			f, err := os.Open(filepath.Join(dir, name))
			if err != nil {
				b.Fatal(err)
			}
			n, err := io.Copy(sha256.New(), f)
			if err != nil {
				b.Fatal(err)
			}
			size += n
			f.Close()
		}
	}
	command, err := exec.LookPath("sha256sum")
	if err != nil {
		command = ""
	}
	var hashing, verifying, summing time.Duration
	for b.Loop() {
		begin := time.Now()
		hash()
		middle := time.Now()
		if r := verified(b, dir, verify.Options{Workers: 2}); r.Status != verify.OK {
			b.Fatal(r.Problems)
		}
		hashing += middle.Sub(begin)
		verifying += time.Since(middle)
		if command == "" {
			continue
		}
		begin = time.Now()
		sum := exec.CommandContext(b.Context(), command, names...)
		sum.Dir = dir
		if err := sum.Run(); err != nil {
			b.Fatal(err)
		}
		summing += time.Since(begin)
	}
	b.SetBytes(size)
	b.ReportAllocs()
	b.ReportMetric(float64(verifying)/float64(hashing), "x_sha256")
	if summing > 0 {
		b.ReportMetric(float64(verifying)/float64(summing), "x_sha256sum")
		b.ReportMetric(float64(verifying.Milliseconds())/float64(b.N), "verify-ms")
	}
}
