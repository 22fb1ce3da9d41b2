//go:build !linux

package native

import (
	"context"

	"github.com/engine-acceptance/acceptance/engine"
)

func identify(int) (engine.Process, error) {
	return engine.Process{}, environment("platform_unproven")
}
func same(engine.Process) error                 { return environment("platform_unproven") }
func describe(int) (Description, error)         { return Description{}, environment("platform_unproven") }
func tree(engine.Process) []engine.Process      { return nil }
func naming(string) []engine.Process            { return nil }
func end(context.Context, engine.Process) error { return environment("platform_unproven") }
