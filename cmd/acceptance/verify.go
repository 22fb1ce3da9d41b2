package main

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"

	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/evidence/statement"
	"github.com/engine-acceptance/acceptance/evidence/verify"
)

// verifyCommand checks a bundle from its bytes alone.
func verifyCommand(ctx context.Context, args []string, std streams) int {
	f := newFlags("verify", std)
	signer := f.text("signer", "", "public key that must have signed, PEM")
	asJSON := f.is("json", "print the result as JSON")
	if !f.parse(args, 1, 1) {
		return exitUsage
	}
	report, code := verified(ctx, f.Arg(0), *signer, std)
	if code != exitOK {
		return code
	}
	if *asJSON {
		if err := writeJSON(std.out, report); err != nil {
			std.say("write the result: %v", err)
			return exitCannotJudge
		}
		return report.Status.ExitCode()
	}
	fmt.Fprintf(std.out, "verify    %s: %s, %s, %.1f MB\n", report.Status, plural(len(report.Rows), "row"), plural(report.Files, "file"), float64(report.Bytes)/1e6)
	const most = 20
	for i, p := range report.Problems {
		if i == most {
			fmt.Fprintf(std.out, "          and %d more\n", report.ProblemCount-most)
			break
		}
		fmt.Fprintf(std.out, "          %s\n", p)
	}
	for _, n := range report.NotRederived {
		fmt.Fprintf(std.out, "trust     not re-derived: %s\n", n)
	}
	switch {
	case report.SignatureChecked:
		fmt.Fprintf(std.out, "signer    %s, checked\n", report.Signer)
	case report.SignatureWhole:
		fmt.Fprintf(std.out, "signer    %s, NOT checked: no byte of the signature was changed, but whose key made it is not known; name it with --signer, or compare the manifest's digest %s\n",
			report.Signer, report.Manifest)
	case report.Manifest == "":
		fmt.Fprintln(std.out, "signer    none: the run was cut before it closed its bundle")
	default:
		fmt.Fprintf(std.out, "signer    %s, not checked: compare the manifest's digest %s with one from elsewhere\n", report.Signer, report.Manifest)
	}
	return report.Status.ExitCode()
}

// verified verifies a bundle; code is not 0 when nothing could be looked at.
func verified(ctx context.Context, dir, signerFile string, std streams) (verify.Report, int) {
	o := verify.Options{Judge: evidence.Judge}
	if signerFile != "" {
		key, err := publicKey(signerFile)
		if err != nil {
			std.say("%v", err)
			return verify.Report{}, exitUsage
		}
		o.Key = key
	}
	report, err := verify.Verify(ctx, dir, o)
	switch {
	case errors.Is(err, verify.ErrUsage):
		std.say("verify %q: %v", dir, err)
		return report, exitUsage
	case err != nil:
		std.say("verify %q: %v", dir, err)
		return report, exitCannotJudge
	}
	return report, exitOK
}

func publicKey(path string) (ed25519.PublicKey, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the signer's key: %w", err)
	}
	key, err := statement.ParsePublicKey(b)
	if err != nil {
		return nil, fmt.Errorf("read the signer's key: %s: %w", path, err)
	}
	return key, nil
}
