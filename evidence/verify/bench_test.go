//go:build unix

package verify_test

import (
	"crypto/sha256"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/engine-acceptance/acceptance/evidence/verify"
)

// BenchmarkVerify reports, as "x_sha256", the time of a verification as a multiple of one sha256 after the other over the same files, both
// taken in this run: the number to reach is 2.
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
	var hashing, verifying time.Duration
	for b.Loop() {
		begin := time.Now()
		hash()
		middle := time.Now()
		if r := verified(b, dir, verify.Options{Workers: 2}); r.Status != verify.OK {
			b.Fatal(r.Problems)
		}
		hashing += middle.Sub(begin)
		verifying += time.Since(middle)
	}
	b.SetBytes(size)
	b.ReportAllocs()
	b.ReportMetric(float64(verifying)/float64(hashing), "x_sha256")
}
