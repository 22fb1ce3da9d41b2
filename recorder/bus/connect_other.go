//go:build !linux

package bus

import (
	"fmt"
	"net"
	"os"
)

// ConnectAs connects as ourselves; another uid needs a system that lets one thread have it.
func ConnectAs(socket string, uid int) (net.Conn, error) {
	if uid != os.Geteuid() {
		return nil, fmt.Errorf("connect as uid %d, we are %d: not supported on this platform", uid, os.Geteuid())
	}
	return net.Dial("unix", socket)
}
