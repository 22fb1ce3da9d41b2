//go:build !linux

package native

import (
	"net/netip"

	"github.com/engine-acceptance/acceptance/engine"
)

type endpoints struct{}

func (*endpoints) owns(engine.Process, netip.AddrPort) error { return environment("platform_unproven") }
