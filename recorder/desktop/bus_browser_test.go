//go:build browser

package desktop

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	. "github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/recorder/bus"
)

// The person's application on both buses.
const (
	letter     = "org.example.Letter"
	letterPath = "/org/example/Letter"
)

// startBus starts a session bus of our own uid.
func (d *desk) startBus(t testing.TB, env ...string) {
	t.Helper()
	d.startBusOf(t, os.Getuid(), env...)
}

// personUID is whose programs a person starts in these tests: as root those of the account nobody, for Chromium's sandbox refuses root, and a bus
// serves no uid without an account.
func personUID() int {
	if os.Getuid() == 0 {
		return 65534
	}
	return os.Getuid()
}

// startBusOf starts the session bus of a person whose programs have their own uid; its services find what they need in a directory of that uid's.
func (d *desk) startBusOf(t testing.TB, uid int, env ...string) {
	t.Helper()
	g := NewWithT(t)
	run, err := os.MkdirTemp("/dev/shm", "bus-")
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = os.RemoveAll(run) })
	cookie, err := os.ReadFile(d.authority)
	g.Expect(err).NotTo(HaveOccurred())
	authority := filepath.Join(run, "Xauthority")
	g.Expect(os.WriteFile(authority, cookie, 0o600)).To(Succeed())
	for _, path := range []string{run, authority} {
		g.Expect(os.Chown(path, uid, uid)).To(Succeed())
	}
	r, w, err := os.Pipe()
	g.Expect(err).NotTo(HaveOccurred())
	cmd := exec.Command("dbus-daemon", "--session", "--nofork", "--nopidfile", "--address=unix:path="+filepath.Join(run, "bus"), "--print-address=3")
	cmd.Dir, cmd.ExtraFiles = run, []*os.File{w}
	cmd.Env = append([]string{"DISPLAY=" + d.display, "XAUTHORITY=" + authority, "HOME=" + run, "XDG_RUNTIME_DIR=" + run, "PATH=" + os.Getenv("PATH")}, env...)
	startProcess(t, cmd, func(a *syscall.SysProcAttr) {
		if uid != os.Getuid() {
			a.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}
		}
	})
	g.Expect(w.Close()).To(Succeed())
	g.Expect(r.SetReadDeadline(time.Now().Add(20 * time.Second))).To(Succeed())
	line, err := bufio.NewReader(r).ReadString('\n')
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(r.Close()).To(Succeed())
	d.bus, d.busPID = strings.TrimSpace(line), cmd.Process.Pid
}

func speak(t testing.TB, address string) *dbus.Conn {
	t.Helper()
	c, err := dbus.Connect(address)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// accessAddress asks a session bus for the accessibility bus.
func accessAddress(c *dbus.Conn) (string, error) {
	var address string
	err := c.Object(accessName, accessPath).Call(accessName+".GetAddress", 0).Store(&address)
	return address, err
}

// busScene is a desk with a bus, a log, and the person's application on both buses.
func busScene(t testing.TB) (*desk, *Log) {
	t.Helper()
	g := NewWithT(t)
	d := startDesk(t)
	d.startBus(t)
	log, err := Start(t.Context(), Config{Display: d.display, XAuthority: d.authority, Bus: d.bus, BusUID: os.Getuid(), CallBudget: 20 * time.Second})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = log.Stop(ctx) // a test that ends the bus has its own word about it
	})
	session := speak(t, d.bus)
	address, err := accessAddress(session)
	g.Expect(err).NotTo(HaveOccurred())
	for _, c := range []*dbus.Conn{session, speak(t, address)} {
		_, err := c.RequestName(letter, dbus.NameFlagDoNotQueue)
		g.Expect(err).NotTo(HaveOccurred())
	}
	return d, log
}

// busOffences are what the violator does over the buses, and what the log must show of it.
var busOffences = []struct {
	kind   string
	seen   Kind
	role   WindowRole
	reason Reason
}{
	{"bus_call", BusAction, Other, ReasonBusAction},
	{"bus_call_unique", BusAction, Other, ReasonBusAction},
	{"bus_signal", BusAction, Other, ReasonBusAction},
	{"bus_file", BusAction, Other, ReasonBusAction},
	{"bus_long_path", BusAction, Other, ReasonBusAction},
	{"bus_listen", BusListen, NoWindow, ReasonWindowRead},
	{"bus_read", BusRead, Other, ""},
	{"bus_nobody", BusAction, NoWindow, ""},
	{"access_action", AccessAction, Other, ReasonAccessAction},
	{"access_key", AccessAction, Other, ReasonAccessAction},
	{"access_read", AccessRead, Other, ReasonWindowRead},
	{"bus_short_lived", BusAction, Other, ReasonBusAction},
}

// What a program does to another one over the session bus or the accessibility bus is seen each time, with its process.
func TestMessagesOverBusesAreSeen(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	d, log := busScene(t)
	v := d.busViolator(t)
	for _, o := range busOffences {
		t.Run(o.kind, func(t *testing.T) {
			g := NewWithT(t)
			seen, named := 0, 0
			for range times {
				from, err := log.Barrier(ctx)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(v.do(o.kind + " 0s")).To(Succeed())
				to, err := log.Barrier(ctx)
				g.Expect(err).NotTo(HaveOccurred())
				for _, ev := range log.Between(from, to) {
					if ev.Kind != o.seen {
						continue
					}
					_, reason := Violation(ev)
					g.Expect(reason).To(Equal(o.reason), "%+v", ev)
					g.Expect(ev.Role).To(Equal(o.role), "%+v", ev)
					seen++
					if ev.PID == v.pid() {
						named++
					}
					if o.role == Other && o.kind != "access_key" && o.kind != "bus_short_lived" {
						g.Expect(ev.PeerPID).To(Equal(os.Getpid()), "%+v", ev)
					}
				}
				log.Release(to)
			}
			g.Expect(seen).To(Equal(times))
			if o.kind == "bus_short_lived" { // whose process can be asked for only while it lives
				t.Logf("process known %d of %d", named, times)
				return
			}
			g.Expect(named).To(Equal(times))
		})
	}
	for _, h := range log.Health() {
		g.Expect(h.Alive).To(BeTrue(), h.Channel.String())
		g.Expect(h.Errors).To(BeZero(), h.Channel.String())
	}
}

// What a program says to itself is nobody's business.
func TestMessagesToOneselfAreQuiet(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	d, log := busScene(t)
	from, err := log.Barrier(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	c := speak(t, d.bus)
	g.Expect(c.Object(letter, letterPath).Call("org.example.Nothing.Do", dbus.FlagNoReplyExpected).Err).NotTo(HaveOccurred())
	g.Expect(c.BusObject().Call("org.freedesktop.DBus.GetId", 0).Err).NotTo(HaveOccurred())
	to, err := log.Barrier(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	n := 0
	for _, ev := range log.Between(from, to) {
		if ev.Kind == BusAction {
			n++
			_, reason := Violation(ev)
			g.Expect(reason).To(BeEmpty(), "%+v", ev)
			g.Expect(ev.PID).To(Equal(ev.PeerPID))
		}
	}
	g.Expect(n).To(Equal(1))
}

// 20,000 messages without a pause: none is lost.
func TestFloodOfMessagesIsKept(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	d, log := busScene(t)
	v := d.busViolator(t)
	from, err := log.Barrier(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	began := time.Now()
	g.Expect(v.do("bus_flood 0s")).To(Succeed())
	to, err := log.Barrier(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	n := 0
	for _, ev := range log.Between(from, to) {
		if ev.Kind == BusAction && ev.PID == v.pid() {
			n++
		}
	}
	t.Logf("%d messages in %v", n, time.Since(began))
	g.Expect(n).To(Equal(floodMessages))
}

func TestLostBusIsToldOnce(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	d, log := busScene(t)
	from, err := log.Barrier(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	p, err := os.FindProcess(d.busPID)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(p.Kill()).To(Succeed())
	g.Eventually(func() bool { return health(log, Bus).Alive }, 10*time.Second, 5*time.Millisecond).Should(BeFalse())
	_, err = log.Barrier(ctx)
	var ce *ChannelError
	g.Expect(errors.As(err, &ce)).To(BeTrue(), "%v", err)
	g.Expect(ce.Channel).To(BeElementOf(Bus, Accessibility)) // the service of the latter ends with the former
	g.Expect(err).To(MatchError(bus.ErrLost))
	n := 0
	for _, ev := range log.Between(from, Mark(1<<62)) {
		if ev.Kind == ChannelLost && ev.Channel == Bus {
			n++
		}
	}
	g.Expect(n).To(BeNumerically(">=", 1))
	g.Expect(health(log, Core).Alive).To(BeTrue())
}

func health(l *Log, ch Channel) ChannelHealth {
	for _, h := range l.Health() {
		if h.Channel == ch {
			return h
		}
	}
	return ChannelHealth{}
}

// A desk whose bus is not there, or which has no accessibility bus, has no guard; the error names the channel.
func TestMissingBusIsNamed(t *testing.T) {
	g := NewWithT(t)
	d := startDesk(t)
	_, err := Start(t.Context(), Config{Display: d.display, XAuthority: d.authority, Bus: "unix:path=" + d.dir + "/none", BusUID: os.Getuid()})
	var ce *ChannelError
	g.Expect(errors.As(err, &ce)).To(BeTrue(), "%v", err)
	g.Expect(ce.Channel).To(Equal(Bus))
	// A bus that looks for its services elsewhere has no org.a11y.Bus to start.
	d.startBus(t, "XDG_DATA_DIRS="+d.dir, "XDG_DATA_HOME="+d.dir)
	_, err = Start(t.Context(), Config{Display: d.display, XAuthority: d.authority, Bus: d.bus, BusUID: os.Getuid()})
	if err == nil {
		t.Skip("this system's dbus-daemon finds its services wherever it is told to look")
	}
	g.Expect(errors.As(err, &ce)).To(BeTrue(), "%v", err)
	g.Expect(ce.Channel).To(Equal(Accessibility))
	g.Expect(ce.Extension).To(Equal(accessName))
}

// busViolator is the violator on a desk with buses.
func (d *desk) busViolator(t testing.TB) *violator {
	t.Helper()
	v := d.startViolator(t)
	NewWithT(t).Expect(v.do("bus " + d.bus)).To(Succeed())
	return v
}

// floodMessages is how many messages a flood has.
const floodMessages = 20_000

// busOffender is the violator's side of the buses.
type busOffender struct {
	address         string
	session, access *dbus.Conn
	owner           string // the unique name of the person's application
}

func (o *busOffender) init(address string) (err error) {
	o.address = address
	if o.session, err = dbus.Connect(address); err != nil {
		return err
	}
	at, err := accessAddress(o.session)
	if err != nil {
		return err
	}
	if o.access, err = dbus.Connect(at); err != nil {
		return err
	}
	return o.session.BusObject().Call("org.freedesktop.DBus.GetNameOwner", 0, letter).Store(&o.owner)
}

// trip makes sure that the bus has had what was sent before.
func trip(c *dbus.Conn) error { return c.BusObject().Call("org.freedesktop.DBus.GetId", 0).Err }

func (o *busOffender) offend(kind string) error {
	tell := func(c *dbus.Conn, to, path, method string, args ...any) error {
		if err := c.Object(to, dbus.ObjectPath(path)).Call(method, dbus.FlagNoReplyExpected, args...).Err; err != nil {
			return err
		}
		return trip(c)
	}
	const activate = "org.freedesktop.Application.Activate"
	switch kind {
	case "bus_call":
		return tell(o.session, letter, letterPath, activate, map[string]dbus.Variant{})
	case "bus_call_unique":
		return tell(o.session, o.owner, letterPath, activate, map[string]dbus.Variant{})
	case "bus_signal":
		m := &dbus.Message{Type: dbus.TypeSignal, Headers: map[dbus.HeaderField]dbus.Variant{dbus.FieldPath: dbus.MakeVariant(dbus.ObjectPath(letterPath)),
			dbus.FieldInterface: dbus.MakeVariant("org.example.Do"), dbus.FieldMember: dbus.MakeVariant("It"), dbus.FieldDestination: dbus.MakeVariant(letter)}}
		o.session.Send(m, nil)
		return trip(o.session)
	case "bus_file":
		return tell(o.session, letter, letterPath, activate, dbus.UnixFD(0))
	case "bus_long_path": // the path comes before the destination in the header
		return tell(o.session, letter, "/a"+strings.Repeat("/b", 100_000), activate)
	case "bus_listen":
		if err := o.session.BusObject().Call("org.freedesktop.DBus.AddMatch", 0, "eavesdrop='true',type='method_call'").Err; err != nil {
			return err
		}
		return o.session.BusObject().Call("org.freedesktop.DBus.RemoveMatch", 0, "eavesdrop='true',type='method_call'").Err
	case "bus_read":
		return tell(o.session, letter, letterPath, "org.freedesktop.DBus.Properties.GetAll", letter)
	case "bus_nobody":
		return tell(o.session, "org.example.Nobody", letterPath, activate)
	case "access_action":
		return tell(o.access, letter, "/org/a11y/atspi/accessible/1", "org.a11y.atspi.Action.DoAction", int32(0))
	case "access_key":
		return tell(o.access, "org.a11y.atspi.Registry", "/org/a11y/atspi/registry/deviceeventcontroller", "org.a11y.atspi.DeviceEventController.GenerateKeyboardEvent",
			int32(38), "", uint32(0))
	case "access_read":
		return tell(o.access, letter, "/org/a11y/atspi/accessible/1", "org.a11y.atspi.Text.GetText", int32(0), int32(10))
	case "bus_short_lived":
		c, err := dbus.Connect(o.address)
		if err != nil {
			return err
		}
		if err := tell(c, letter, letterPath, activate, map[string]dbus.Variant{}); err != nil {
			return err
		}
		return c.Close()
	case "bus_flood":
		for range floodMessages {
			if err := o.session.Object(letter, letterPath).Call(activate, dbus.FlagNoReplyExpected, map[string]dbus.Variant{}).Err; err != nil {
				return err
			}
		}
		return trip(o.session)
	}
	return fmt.Errorf("unknown kind %q", kind)
}
