// Package sessionbus lets programs of the person speak on the desk's session bus and accessibility bus: an application that can be acted
// on, as real ones are, and the positive controls that act on it.
//
// A bus serves the uid that it runs with, and the person's programs have another one where the harness is root: the address names the uid as
// which they connect.
package sessionbus

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/godbus/dbus/v5"

	"github.com/engine-acceptance/acceptance/recorder/bus"
)

// Names of the person's application on both buses, and of what it offers there.
const (
	Application = "org.example.Letter"
	ObjectPath  = "/org/example/Letter"
	// Activate is what D-Bus activation calls (desktop entry specification, "D-Bus Activation").
	Activate = "org.freedesktop.Application.Activate"
	// AccessiblePath and DoAction are those of an accessible control (at-spi2-core, xml/Action.xml).
	AccessiblePath = "/org/a11y/atspi/accessible/1"
	DoAction       = "org.a11y.atspi.Action.DoAction"
)

// Address is where a session bus is and whom it serves. The zero value is no bus.
type Address struct {
	Bus string
	UID int
}

// Args are the address as arguments of a role; none for the zero value.
func (a Address) Args() []string {
	if a.Bus == "" {
		return nil
	}
	return []string{"--bus", a.Bus, "--bus-uid", strconv.Itoa(a.UID)}
}

// Buses are connections to both buses. Close frees them.
type Buses struct {
	Session, Accessibility *dbus.Conn
}

// Open connects to the session bus, and to the accessibility bus that it names and, if need be, starts.
func Open(ctx context.Context, a Address) (_ *Buses, err error) {
	b := &Buses{}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Close())
		}
	}()
	if b.Session, err = connect(a.Bus, a.UID); err != nil {
		return nil, err
	}
	var address string
	if err := b.Session.Object("org.a11y.Bus", "/org/a11y/bus").CallWithContext(ctx, "org.a11y.Bus.GetAddress", 0).Store(&address); err != nil {
		return nil, fmt.Errorf("address of the accessibility bus: %w", err)
	}
	if b.Accessibility, err = connect(address, a.UID); err != nil {
		return nil, err
	}
	return b, nil
}

func connect(address string, uid int) (*dbus.Conn, error) {
	fail := func(err error) (*dbus.Conn, error) {
		return nil, fmt.Errorf("connect to bus %.200q as uid %d: %w", address, uid, err)
	}
	rest, ok := strings.CutPrefix(address, "unix:")
	if !ok {
		return fail(errors.New("want a unix address"))
	}
	socket := ""
	for pair := range strings.SplitSeq(rest, ",") {
		key, value, _ := strings.Cut(pair, "=")
		value, err := url.PathUnescape(value)
		if err != nil {
			return fail(err)
		}
		switch key {
		case "path":
			socket = value
		case "abstract":
			socket = "@" + value
		}
	}
	nc, err := bus.ConnectAs(socket, uid)
	if err != nil {
		return fail(err)
	}
	c, err := dbus.NewConn(nc)
	if err != nil {
		return fail(errors.Join(err, nc.Close()))
	}
	if err = c.Auth([]dbus.Auth{dbus.AuthExternal(strconv.Itoa(uid))}); err == nil {
		err = c.Hello()
	}
	if err != nil {
		return fail(errors.Join(err, c.Close()))
	}
	return c, nil
}

// Close ends both connections.
func (b *Buses) Close() error {
	var errs []error
	for _, c := range []*dbus.Conn{b.Session, b.Accessibility} {
		if c != nil {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}

// Offer makes the connections those of the person's application. acted is called with each action that anybody had it do.
func (b *Buses) Offer(acted func(what string)) error {
	var errs []error
	for _, c := range []*dbus.Conn{b.Session, b.Accessibility} {
		errs = append(errs, c.ExportMethodTable(map[string]any{
			"Activate": func(map[string]dbus.Variant) *dbus.Error { acted("activate"); return nil }}, ObjectPath, "org.freedesktop.Application"),
			c.ExportMethodTable(map[string]any{
				"DoAction": func(int32) (bool, *dbus.Error) { acted("action"); return true, nil }}, AccessiblePath, "org.a11y.atspi.Action"))
		reply, err := c.RequestName(Application, dbus.NameFlagDoNotQueue)
		if err == nil && reply != dbus.RequestNameReplyPrimaryOwner {
			err = fmt.Errorf("name %s is taken", Application)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Act activates the person's application over the session bus.
func (b *Buses) Act(ctx context.Context) error {
	return b.Session.Object(Application, ObjectPath).CallWithContext(ctx, Activate, 0, map[string]dbus.Variant{}).Err
}

// Press does the first action of a control of the person's application, as assistive programs do.
func (b *Buses) Press(ctx context.Context) error {
	return b.Accessibility.Object(Application, AccessiblePath).CallWithContext(ctx, DoAction, 0, int32(0)).Err
}
