package recorder

import (
	"bytes"
	"io"
	"os"
	"syscall"
	"testing"

	"github.com/onsi/gomega"
)

// An encoder that takes nothing for a while costs no frame: all come out, in order, whatever became of the caller's buffer meanwhile.
func TestBacklog(t *testing.T) {
	g := gomega.NewWithT(t)
	r, w, err := os.Pipe()
	g.Expect(err).NotTo(gomega.HaveOccurred())
	defer r.Close()
	b := newBacklog(w)
	frame := make([]byte, 200<<10) // more than a pipe holds
	for n := range maxBacklog {
		for i := range frame {
			frame[i] = byte(n)
		}
		g.Expect(b.put(frame)).To(gomega.Succeed())
	}
	read := make(chan []byte)
	go func() {
		all, _ := io.ReadAll(r)
		read <- all
	}()
	g.Expect(b.end()).To(gomega.Succeed())
	w.Close()
	all := <-read
	g.Expect(all).To(gomega.HaveLen(maxBacklog * len(frame)))
	for n := range maxBacklog {
		part := all[n*len(frame):][:len(frame)]
		g.Expect(bytes.Count(part, []byte{byte(n)})).To(gomega.Equal(len(frame)), "frame %d", n)
	}
}

// An encoder that is gone is said, by a later frame or at the end, and never forgotten.
func TestBacklog_encoder_gone(t *testing.T) {
	g := gomega.NewWithT(t)
	r, w, err := os.Pipe()
	g.Expect(err).NotTo(gomega.HaveOccurred())
	defer w.Close()
	r.Close()
	b := newBacklog(w)
	_ = b.put([]byte("frame"))
	g.Expect(b.end()).To(gomega.MatchError(syscall.EPIPE))
}
