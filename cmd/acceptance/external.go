package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/engine-acceptance/acceptance/engine/mcp"
	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/matrix/strict"
	"github.com/engine-acceptance/acceptance/suites/host"
)

// external reports whether a request names the file of an engine from elsewhere, and not one of the matrix's own.
func external(name string) bool { return strings.HasSuffix(name, ".yaml") }

// withEngine returns the matrix that knows the engine of a request, and the engine's name in it. A name without .yaml is one of the matrix's own.
func withEngine(m *matrix.Matrix, name string) (*matrix.Matrix, *matrix.EngineFile, error) {
	if !external(name) {
		file, err := m.EngineFile(name)
		return m, file, err
	}
	raw, err := readBounded(name, strict.MaxBytes)
	if err != nil {
		return nil, nil, fmt.Errorf("read the engine file: %w", err)
	}
	return m.WithEngine(name, raw)
}

// commandOf is how the engine of a file from elsewhere is started. A program that is named with a slash, and the mapping, lie beside the engine's file;
// any other program is looked for where the shell would.
func commandOf(name string, file *matrix.EngineFile, self string) (host.Command, error) {
	dir := filepath.Dir(name)
	c := host.Command{Args: file.Command[1:]}
	program := file.Command[0]
	if strings.Contains(program, "/") && !filepath.IsAbs(program) {
		program = filepath.Join(dir, program)
	}
	found, err := exec.LookPath(program)
	if err == nil {
		c.Path, err = filepath.Abs(found)
	}
	if err != nil {
		return host.Command{}, fmt.Errorf("%s: command: %w", name, err)
	}
	// Our own program is put where the engine's uid can execute it when the desk stands.
	if err := reachable(c.Path); err != nil && c.Path != self {
		return host.Command{}, fmt.Errorf("%s: command: %w", name, err)
	}
	if file.Mapping == "" {
		return c, nil
	}
	at := file.Mapping
	if !filepath.IsAbs(at) {
		at = filepath.Join(dir, at)
	}
	raw, err := readBounded(at, strict.MaxBytes)
	if err != nil {
		return host.Command{}, fmt.Errorf("read the mapping: %w", err)
	}
	names, err := matrix.ReadMapping(at, raw)
	if err != nil {
		return host.Command{}, err
	}
	c.Mapping = mcp.Mapping(names)
	return c, nil
}

// reachable says whether an ordinary uid can execute a program, where that is who the engine will be: run as root, the harness drops it to one.
func reachable(path string) error {
	if os.Getuid() != 0 {
		return nil
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	for at, need := real, os.FileMode(0o005); ; at, need = filepath.Dir(at), 0o001 {
		info, err := os.Stat(at)
		if err != nil {
			return err
		}
		if info.Mode()&need != need {
			return fmt.Errorf("the engine runs as an ordinary uid, which cannot execute %s: %s has mode %v; put the program where everybody may execute it", path, at, info.Mode().Perm())
		}
		if at == filepath.Dir(at) {
			return nil
		}
	}
}
