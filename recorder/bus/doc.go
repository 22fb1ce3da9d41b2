// Package bus is a raw client of D-Bus message buses, as much of one as a guard needs: it authenticates, asks the bus
// itself, and becomes a monitor that is handed every message of everybody (D-Bus specification 0.42,
// org.freedesktop.DBus.Monitoring).
//
//	c, err := bus.Dial(ctx, "unix:path=/run/user/1000/bus", uid)
//	c.Handle(bus.Handler{Message: func(m bus.Message) { ... }, Lost: func(err error) { ... }})
//	err = c.Monitor(ctx) // from here on the connection only listens
//
// What a bus and its clients send is hostile: header fields above a bound, unknown fields and nested values are skipped or
// told of with Cut, bodies are read past. A connection agrees to take file descriptors, because a bus hides a
// message that carries one from a monitor that cannot take it; they are dropped by the kernel unseen.
package bus
