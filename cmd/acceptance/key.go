package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/engine-acceptance/acceptance/evidence/statement"
)

// keyCommand makes a signing key: DIR/signing.pem stays with the signer, DIR/signer.pem goes to those who verify. Neither is overwritten.
func keyCommand(_ context.Context, args []string, std streams) int {
	f := newFlags("key", std)
	if !f.parse(args, 1, 1) {
		return exitUsage
	}
	private, public, err := statement.GenerateKey()
	if err != nil {
		std.say("key: %v", err)
		return exitCannotJudge
	}
	if err := os.MkdirAll(f.Arg(0), 0o700); err != nil {
		std.say("key: %v", err)
		return exitUsage
	}
	pair := []struct {
		name    string
		content []byte
		mode    os.FileMode
	}{{"signing.pem", private, 0o600}, {"signer.pem", public, 0o644}}
	for _, file := range pair {
		// Half a pair helps nobody, so look for both before the first is written.
		if path := filepath.Join(f.Arg(0), file.name); exists(path) {
			std.say("key: %s exists and is not overwritten", path)
			return exitUsage
		}
	}
	for _, file := range pair {
		path := filepath.Join(f.Arg(0), file.name)
		out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, file.mode)
		if errors.Is(err, fs.ErrExist) {
			std.say("key: %s exists and is not overwritten", path)
			return exitUsage
		}
		if err == nil {
			_, err = out.Write(file.content)
			err = errors.Join(err, out.Close())
		}
		if err != nil {
			std.say("key: write %s: %v", path, err)
			return exitUsage
		}
		fmt.Fprintln(std.out, path)
	}
	return exitOK
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
