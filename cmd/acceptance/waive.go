package main

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"os"

	"github.com/engine-acceptance/acceptance/evidence/gate"
	"github.com/engine-acceptance/acceptance/evidence/waiver"
)

// waiveCommand signs a waiver that somebody wrote: the losses against one baseline that a build may have, until a day (J13).
func waiveCommand(_ context.Context, args []string, std streams) int {
	f := newFlags("waive", std)
	keyFile := f.text("key", "", "signing key, PKCS#8 PEM")
	out := f.text("out", "", "file of the signed waiver")
	if !f.parse(args, 1, 1) {
		return exitUsage
	}
	if *keyFile == "" || *out == "" {
		std.say("waive: want --key and --out: a waiver that nobody signs waives nothing")
		return exitUsage
	}
	key, err := readKey(*keyFile)
	if err != nil {
		std.say("waive: %v", err)
		return exitUsage
	}
	raw, err := readBounded(f.Arg(0), waiver.MaxSize)
	if err != nil {
		std.say("waive: %v", err)
		return exitUsage
	}
	w, err := waiver.Parse(f.Arg(0), raw)
	if err != nil {
		fmt.Fprintln(std.err, err)
		return exitUsage
	}
	envelope, err := w.Seal(key)
	if err != nil {
		std.say("waive: %v", err)
		return exitUsage
	}
	if exists(*out) {
		std.say("waive: %s exists and is not overwritten", *out)
		return exitUsage
	}
	if err := os.WriteFile(*out, envelope, 0o644); err != nil {
		std.say("waive: %v", err)
		return exitUsage
	}
	for _, l := range w.Losses {
		fmt.Fprintf(std.out, "waived    %s\n", l)
	}
	fmt.Fprintf(std.out, "waiver    %s, by %s until %s\n", *out, w.Owner, w.Expires)
	return exitOK
}

// readWaiver reads a signed waiver. A file that is not there is an error; one that does not hold is for the policy to refuse.
func readWaiver(path string, pub ed25519.PublicKey) (*gate.Waiver, error) {
	raw, err := readBounded(path, waiver.MaxSize)
	if err != nil {
		return nil, fmt.Errorf("read the waiver: %w", err)
	}
	w := &gate.Waiver{}
	if w.Document, w.Signer, w.Checked, err = waiver.Open(raw, pub); err != nil {
		w.Problem = err.Error()
	}
	return w, nil
}
