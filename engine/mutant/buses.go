package mutant

import (
	"github.com/godbus/dbus/v5"
	"github.com/jezek/xgb"
	"github.com/jezek/xgb/xproto"
)

// The person's application, as it stands on both buses of a desk.
const application = "org.example.Letter"

// activate has the person's application come to the front, over the session bus (desktop entry specification, "D-Bus Activation").
func activate(*xgb.Conn, xproto.Window) {
	c, err := dbus.ConnectSessionBus()
	if err != nil {
		return
	}
	defer c.Close()
	c.Object(application, "/org/example/Letter").Call("org.freedesktop.Application.Activate", 0, map[string]dbus.Variant{})
}

// doAction presses a control of the person's application as an assistive program would (at-spi2-core, xml/Action.xml).
func doAction(*xgb.Conn, xproto.Window) {
	c, err := dbus.ConnectSessionBus()
	if err != nil {
		return
	}
	defer c.Close()
	var address string
	if c.Object("org.a11y.Bus", "/org/a11y/bus").Call("org.a11y.Bus.GetAddress", 0).Store(&address) != nil {
		return
	}
	a, err := dbus.Connect(address)
	if err != nil {
		return
	}
	defer a.Close()
	a.Object(application, "/org/a11y/atspi/accessible/1").Call("org.a11y.atspi.Action.DoAction", 0, int32(0))
}
