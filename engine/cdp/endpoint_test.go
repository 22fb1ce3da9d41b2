package cdp

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/engine"
)

// An endpoint file that an earlier run left names a port that another program may hold by now (chrome-launcher and others connect to it).
func TestAwaitEndpoint_of_another_program_is_not_believed(t *testing.T) {
	g := gomega.NewWithT(t)
	dir := t.TempDir()
	write := func(port string) {
		g.Expect(os.WriteFile(filepath.Join(dir, endpointFile), []byte(port+"\n/devtools/browser/5b1f2a52-4c0e-4b7e-9a53-0d8f3c1f7a11"), 0o600)).To(gomega.Succeed())
	}
	refused := refusal(engine.OpPrepare, engine.CodeEndpointOwnerMismatch, "endpoint_owner", engine.Detail{Reason: "owner"})
	asked := 0
	b := &Browser{profile: dir, child: &child{pid: os.Getpid(), done: make(chan struct{})},
		owns: func(_ context.Context, p engine.Process, addr netip.AddrPort) error {
			g.Expect(p.PID).To(gomega.Equal(os.Getpid()))
			if addr.Port() != 4000 {
				asked++
				if asked == 2 {
					write("4000") // the browser has opened its own meanwhile
				}
				return refused
			}
			return nil
		}}
	write("3000")
	addr, _, err := b.awaitEndpoint(t.Context())
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(addr.Port()).To(gomega.BeEquivalentTo(4000))

	write("3000")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	asked = 10
	_, _, err = b.awaitEndpoint(ctx)
	g.Expect(engine.AsRefusal(err)).To(gomega.Equal(refused))
}
