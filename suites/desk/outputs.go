package desk

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/engine-acceptance/acceptance/suites/xwire"
)

// scale is the session's scale, as desktop environments tell it to applications.
const scale = "GDK_SCALE=2"

// settleOutputs parts the screen into two monitors where the variant has two, before a window manager asks, and records how many there are.
func (d *Desk) settleOutputs(ctx context.Context) error {
	const name = "outputs"
	c, err := d.Dial(ctx)
	if err != nil {
		return &ReadinessError{Part: name, Err: err}
	}
	defer c.Close()
	if d.cfg.Variant == TwoOutputs {
		if err := part2(ctx, c); err != nil {
			return &ReadinessError{Part: name, Err: err}
		}
	}
	if d.facts.Outputs, err = Outputs(ctx, c); err != nil {
		return &ReadinessError{Part: name, Err: err}
	}
	d.facts.Scale = 1
	if d.cfg.Variant == Scaled {
		d.facts.Scale = 2
	}
	if d.cfg.Variant == TwoOutputs && d.facts.Outputs != 2 {
		return &ReadinessError{Part: name, Err: fmt.Errorf("the X server tells of %d monitors, want 2", d.facts.Outputs)}
	}
	return nil
}

// randr is the major opcode of the RandR extension.
func randr(ctx context.Context, c *xwire.Conn) (byte, error) {
	major, _, there, err := c.Extension(ctx, "RANDR")
	if err == nil && !there {
		err = fmt.Errorf("the X server has no extension RANDR")
	}
	return major, err
}

// Outputs counts the monitors that the server tells of (RRGetMonitors, RandR 1.5).
func Outputs(ctx context.Context, c *xwire.Conn) (int, error) {
	major, err := randr(ctx, c)
	if err != nil {
		return 0, err
	}
	b, err := c.Call(ctx, xwire.Req(major, 42).U32(c.Root).U8(1, 0, 0, 0))
	if err != nil {
		return 0, err
	}
	if len(b) < 32 {
		return 0, fmt.Errorf("short list of monitors")
	}
	return int(binary.LittleEndian.Uint32(b[12:])), nil
}

// part2 makes two monitors out of the screen (RRSetMonitor, RandR 1.5): the left one with the server's only output, the right one with none.
func part2(ctx context.Context, c *xwire.Conn) error {
	major, err := randr(ctx, c)
	if err != nil {
		return err
	}
	b, err := c.Call(ctx, xwire.Req(major, 25).U32(c.Root)) // RRGetScreenResourcesCurrent
	if err != nil {
		return err
	}
	if len(b) < 32 {
		return fmt.Errorf("short list of outputs")
	}
	crtcs, outputs := int(binary.LittleEndian.Uint16(b[16:])), int(binary.LittleEndian.Uint16(b[18:]))
	at := 32 + 4*crtcs
	if outputs < 1 || len(b) < at+4 {
		return fmt.Errorf("the X server has %d outputs, want one at least", outputs)
	}
	output := binary.LittleEndian.Uint32(b[at:])
	half := c.Width / 2
	for i, name := range []string{"LEFT", "RIGHT"} {
		atom, err := c.Atom(ctx, name)
		if err != nil {
			return err
		}
		// Millimetres as at 96 dots an inch.
		mm := func(px int) uint32 { return uint32(px * 254 / 960) }
		req := xwire.Req(major, 43).U32(c.Root, atom).U8(byte(1-i), 0).U16(uint16(1-i)).I16(i*half, 0).U16(uint16(half), uint16(c.Height)).U32(mm(half), mm(c.Height))
		if i == 0 {
			req = req.U32(output)
		}
		if err := c.Send(req); err != nil {
			return err
		}
	}
	return nil
}
