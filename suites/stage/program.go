package stage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// program is one kind of decoy: what it takes to have it run as a person would, and nothing that a person's own would not have.
type program struct {
	// ready puts what the program needs below its home, and says what to run.
	ready func(s *Stage, home string) (path string, args []string, err error)
	// windowless programs show no window.
	windowless bool
}

// programs are the decoys that a desk can seat (matrix.Verbs, attach).
var programs = map[string]program{
	"firefox": {ready: func(s *Stage, home string) (string, []string, error) {
		path, err := installed(firefoxes)
		if err != nil {
			return "", nil, err
		}
		args, err := s.firefoxProfile(home)
		return path, args, err
	}},
	// The same Firefox under a name that says nothing: a copy of its program, beside links to all that it loads.
	"renamed_firefox": {ready: func(s *Stage, home string) (string, []string, error) {
		real, err := installed(firefoxes)
		if err != nil {
			return "", nil, err
		}
		dir := filepath.Join(home, "reader")
		if err := s.makeDirs(dir); err != nil {
			return "", nil, err
		}
		entries, err := os.ReadDir(filepath.Dir(real))
		if err != nil {
			return "", nil, err
		}
		for _, e := range entries {
			err := os.Symlink(filepath.Join(filepath.Dir(real), e.Name()), filepath.Join(dir, e.Name()))
			if err != nil && !errors.Is(err, os.ErrExist) {
				return "", nil, err
			}
		}
		path := filepath.Join(dir, "reader")
		if err := copyOnce(real, path); err != nil {
			return "", nil, err
		}
		args, err := s.firefoxProfile(home)
		return path, args, err
	}},
	// The person's Chromium, with remote debugging switched on by the person and nobody's approval to use it.
	"chromium": {ready: func(s *Stage, home string) (string, []string, error) {
		path, err := installed(chromiums)
		if err != nil {
			return "", nil, err
		}
		profile := filepath.Join(home, "profile")
		return path, []string{"--user-data-dir=" + profile, "--remote-debugging-port=0", "--no-first-run", "--no-default-browser-check",
			"--password-store=basic", "about:blank"}, s.makeDirs(profile)
	}},
	"epiphany": {ready: plain("/usr/bin/epiphany-browser")},
	"webkitgtk_minibrowser": {ready: plain("/usr/lib/x86_64-linux-gnu/webkit2gtk-4.1/MiniBrowser",
		"/usr/lib/x86_64-linux-gnu/webkit2gtk-4.0/MiniBrowser")},
	"xterm": {ready: plain("/usr/bin/xterm")},
	// A program that is no browser at all.
	"clock": {windowless: true, ready: func(*Stage, string) (string, []string, error) {
		path, err := installed(sleeps)
		return path, []string{"600"}, err
	}},
	// The same program under the name of a browser that nobody knows.
	"unknown_browser": {windowless: true, ready: func(s *Stage, home string) (string, []string, error) {
		real, err := installed(sleeps)
		if err != nil {
			return "", nil, err
		}
		path := filepath.Join(home, "otter-browser")
		return path, []string{"600"}, copyOnce(real, path)
	}},
}

// Where Debian puts the programs.
var (
	firefoxes = []string{"/usr/lib/firefox-esr/firefox-esr", "/usr/lib/firefox/firefox"}
	chromiums = []string{"/usr/lib/chromium/chromium", "/usr/lib/chromium-browser/chromium-browser", "/opt/google/chrome/chrome"}
	sleeps    = []string{"/usr/bin/sleep", "/bin/sleep"}
)

func plain(paths ...string) func(*Stage, string) (string, []string, error) {
	return func(*Stage, string) (string, []string, error) {
		path, err := installed(paths)
		return path, nil, err
	}
}

// installed is the first path that is there.
func installed(paths []string) (string, error) {
	for _, p := range paths {
		if _, err := os.Stat(p); err == nil {
			return p, nil
		}
	}
	return "", fmt.Errorf("it is not installed: looked for %v", paths)
}

// firefoxProfile makes a profile of its own, with preferences that keep a first start quiet; none of them enables remote control.
func (s *Stage) firefoxProfile(home string) ([]string, error) {
	profile := filepath.Join(home, "profile")
	if err := s.makeDirs(profile); err != nil {
		return nil, err
	}
	prefs := filepath.Join(profile, "user.js")
	text := "user_pref(\"browser.shell.checkDefaultBrowser\", false);\nuser_pref(\"datareporting.policy.dataSubmissionEnabled\", false);\nuser_pref(\"browser.aboutwelcome.enabled\", false);\n"
	if err := os.WriteFile(prefs, []byte(text), 0o600); err != nil {
		return nil, err
	}
	return []string{"--profile", profile, "--no-remote", "--new-instance", "about:blank"}, s.give(prefs)
}

// copyOnce copies a program to where a row before may have put it already.
func copyOnce(from, to string) error {
	if _, err := os.Stat(to); err == nil {
		return nil
	}
	return copyFile(from, to, 0o755)
}
