//go:build !linux

package provenance

import "os/exec"

func release() (name, kernel string) { return "unknown", "unknown" }

func ownGroup(*exec.Cmd) {}
