//go:build browser && linux

package report

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/onsi/gomega"
)

// ordinary is a uid that is not root's: the browser keeps its sandbox.
const ordinary = 61234

// watched is what the browser asked for and complained about.
type watched struct {
	mu       sync.Mutex
	requests []string
	problems []string
}

// browse opens a browser on the bundle's own folder and returns what it asked for.
func browse(t *testing.T, dir string) (context.Context, *watched) {
	t.Helper()
	g := gomega.NewWithT(t)
	path, err := exec.LookPath("chromium")
	g.Expect(err).NotTo(gomega.HaveOccurred())
	home, err := os.MkdirTemp("", "report-")
	g.Expect(err).NotTo(gomega.HaveOccurred())
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	attr := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if os.Getuid() == 0 {
		attr.Credential = &syscall.Credential{Uid: ordinary, Gid: ordinary}
		g.Expect(os.Chown(home, ordinary, ordinary)).To(gomega.Succeed())
		for d := dir; len(d) > len(os.TempDir()); d = filepath.Dir(d) {
			g.Expect(os.Chmod(d, 0o755)).To(gomega.Succeed())
		}
		g.Expect(filepath.Walk(dir, func(name string, _ os.FileInfo, err error) error {
			if err != nil {
				return err
			}
			return os.Chown(name, ordinary, ordinary)
		})).To(gomega.Succeed())
	}
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), chromedp.ExecPath(path), chromedp.Flag("headless", "new"), chromedp.UserDataDir(filepath.Join(home, "profile")),
		chromedp.NoFirstRun, chromedp.Flag("disable-background-networking", true), chromedp.Env("HOME="+home),
		chromedp.ModifyCmdFunc(func(c *exec.Cmd) { c.SysProcAttr, c.Dir = attr, home }))
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	w := &watched{}
	g.Expect(chromedp.Listen(ctx, func(ev any) {
		w.mu.Lock()
		defer w.mu.Unlock()
		switch ev := ev.(type) {
		case *network.EventRequestWillBeSent:
			w.requests = append(w.requests, ev.Request.URL)
		case *log.EventEntryAdded:
			w.problems = append(w.problems, ev.Entry.Text+" "+ev.Entry.URL)
		case *runtime.EventExceptionThrown:
			w.problems = append(w.problems, ev.ExceptionDetails.Text)
		}
	})).To(gomega.Succeed())
	g.Expect(chromedp.Do(ctx, command(network.Enable, network.EnableParams{}), command(log.Enable, cdp.Empty{}))).To(gomega.Succeed())
	return ctx, w
}

// command is one command of the protocol as a step.
func command[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}

// eval evaluates an expression in the page within its own budget.
func eval[T any](t *testing.T, ctx context.Context, expression string) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	gomega.NewWithT(t).Expect(err).NotTo(gomega.HaveOccurred(), expression)
	return v
}

// open loads a page within its own budget.
func open(t *testing.T, ctx context.Context, url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	gomega.NewWithT(t).Expect(chromedp.Do(ctx, chromedp.Navigate(url))).To(gomega.Succeed())
}

// shown counts the rows of the index that can be seen.
const shown = `Array.from(document.querySelectorAll("[data-outcome]")).filter(function (r) { return r.getBoundingClientRect().height > 0 }).length`

// A real browser on the folder, without a network: the filter filters, marks move the film, nothing beyond the folder is asked for, nothing is
// complained about, and nothing sticks out of a narrow screen.
func TestPages_in_a_browser(t *testing.T) {
	g := gomega.NewWithT(t)
	dir, in := pack(t)
	bad := in.Plan.Rows[1]
	film := filepath.Join(dir, "rows", "chromium", "x11", "type-steals", "attempt-1", "film.mp4")
	out, err := exec.Command("ffmpeg", "-v", "error", "-y", "-f", "lavfi", "-i", "testsrc=d=1.2:r=15:s=320x180", "-pix_fmt", "yuv420p", "-g", "1", film).CombinedOutput()
	g.Expect(err).NotTo(gomega.HaveOccurred(), string(out))
	ctx, w := browse(t, dir)
	base := "file://" + filepath.ToSlash(dir) + "/"

	open(t, ctx, base+IndexFile)
	g.Expect(eval[int](t, ctx, shown)).To(gomega.Equal(4))
	eval[bool](t, ctx, `document.querySelector('.filter button[data-f="fail"]').click() === undefined`)
	g.Expect(eval[int](t, ctx, shown)).To(gomega.Equal(2))

	open(t, ctx, base+PageOf(bad))
	at := func() float64 {
		g.Eventually(func() bool {
			return eval[bool](t, ctx, `document.querySelector("video").readyState > 1 && !document.querySelector("video").seeking`)
		}, 20*time.Second, 100*time.Millisecond).Should(gomega.BeTrue())
		return eval[float64](t, ctx, `document.querySelector("video").currentTime`)
	}
	g.Expect(at()).To(gomega.BeNumerically("~", 0.67, 0.02)) // it opens at the first divergence
	// The play head stands where the film does: at 0.67 of 1.2 s.
	head := func() float64 {
		return eval[float64](t, ctx, `parseFloat(document.querySelector(".now line").getAttribute("x1"))`)
	}
	g.Eventually(head, 10*time.Second, 50*time.Millisecond).Should(gomega.BeNumerically("~", 55.6, 1))
	g.Expect(eval[string](t, ctx, `getComputedStyle(document.querySelector(".now")).opacity`)).To(gomega.Equal("1"))
	// Who points at a mark, or near it, reads who did what; who leaves reads how to.
	tell := func() string { return eval[string](t, ctx, `document.querySelector("[data-tell]").textContent`) }
	g.Expect(tell()).To(gomega.ContainSubstring("Point at a mark"))
	const point = `(function (kind, lane, i, dx) {
		var g = document.querySelector('svg.line g[aria-label="' + lane + '"]'), a = g.querySelectorAll("a")[i], b = a.querySelector("rect,circle,text").getBoundingClientRect();
		a.ownerSVGElement.dispatchEvent(new PointerEvent(kind, {bubbles: true, cancelable: true, detail: kind === "click" ? 1 : 0, clientX: b.left + b.width / 2 + dx, clientY: b.top + b.height / 2}));
		return parseFloat(a.getAttribute("data-s"));
	})`
	eval[float64](t, ctx, point+`("pointermove", "browser", 0, 6)`)
	g.Expect(tell()).To(gomega.Equal("0.66 s, browser, chromium (pid 12): 1 SetInputFocus"))
	eval[float64](t, ctx, point+`("pointermove", "person", 0, 0)`)
	g.Expect(tell()).To(gomega.ContainSubstring("person, acceptance (pid 11)"))
	eval[float64](t, ctx, point+`("pointerleave", "person", 0, 0)`)
	g.Expect(tell()).To(gomega.ContainSubstring("Point at a mark"))
	// A click or a tap on it seeks the film, and the play head follows.
	want := eval[float64](t, ctx, point+`("click", "person", 0, 0)`)
	g.Expect(at()).To(gomega.BeNumerically("~", want, 0.02))
	g.Expect(want).NotTo(gomega.BeNumerically("~", 0.67, 0.02))
	g.Eventually(head, 10*time.Second, 50*time.Millisecond).Should(gomega.BeNumerically("~", want/1.2*100, 1))
	// The tab key stops at one mark of all; arrow keys walk, and Enter seeks.
	g.Expect(eval[int](t, ctx, `document.querySelectorAll('svg.line a[tabindex="0"]').length`)).To(gomega.Equal(1))
	press := func(key string) {
		eval[bool](t, ctx, `document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key: "`+key+`", bubbles: true, cancelable: true}))`)
	}
	// Said beside the focus itself: a browser without a desktop need not tell a page of it.
	eval[bool](t, ctx, `(function () { var a = document.querySelector('svg.line a[tabindex="0"]'); a.focus(); return a.dispatchEvent(new FocusEvent("focusin", {bubbles: true})); })()`)
	first := tell()
	g.Expect(first).To(gomega.ContainSubstring("step bind-1"))
	press("ArrowRight")
	g.Expect(tell()).To(gomega.ContainSubstring("step act"))
	press("ArrowDown")
	g.Expect(tell()).To(gomega.ContainSubstring("engine browser_type in step act"))
	g.Expect(eval[int](t, ctx, `document.querySelectorAll('svg.line a[tabindex="0"]').length`)).To(gomega.Equal(1))
	eval[bool](t, ctx, `document.activeElement.dispatchEvent(new MouseEvent("click", {bubbles: true, cancelable: true, detail: 0}))`)
	g.Expect(at()).To(gomega.BeNumerically("~", 0.60, 0.02))
	press("Home")
	press("ArrowUp")
	g.Expect(tell()).To(gomega.Equal(first))

	for _, page := range []string{IndexFile, PageOf(bad), PageOf(in.Plan.Rows[2])} {
		for _, width := range []int64{1280, 400} {
			g.Expect(chromedp.Do(ctx, chromedp.EmulateViewport(width, 900))).To(gomega.Succeed())
			open(t, ctx, base+page)
			g.Expect(eval[int64](t, ctx, `document.documentElement.scrollWidth`)).To(gomega.BeNumerically("<=", width), "%s at %d", page, width)
		}
	}

	g.Expect(chromedp.Do(ctx, command(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}))).To(gomega.Succeed())
	open(t, ctx, base+IndexFile)
	g.Expect(eval[int](t, ctx, shown)).To(gomega.Equal(4))
	g.Expect(eval[string](t, ctx, `getComputedStyle(document.querySelector(".filter")).display`)).To(gomega.Equal("none"))

	w.mu.Lock()
	defer w.mu.Unlock()
	for _, u := range w.requests {
		// Data is the browser's own: the signs of its film controls. Pages hold none (TestWrite_nothing_external).
		g.Expect(strings.HasPrefix(u, base) || strings.HasPrefix(u, "data:image/svg+xml")).To(gomega.BeTrue(), u)
	}
	g.Expect(len(w.requests)).To(gomega.BeNumerically(">", 8))
	for _, p := range w.problems {
		// The fixed bundle's stills and other films are no pictures; that is all that may be complained about.
		g.Expect(p).To(gomega.ContainSubstring("ERR_"), p)
	}
}
