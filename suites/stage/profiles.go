package stage

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// personProfile is a default profile of one product in the person's home, as an installed and used browser has it.
type personProfile struct {
	product string
	// dir is where it is below the home; files are what is in it, the first being opened by the control and by nobody else.
	dir   string
	files []string
}

// personProfiles are those of every product that stores one on this system. What is in the files is of no use to anybody.
var personProfiles = []personProfile{
	{"firefox", ".mozilla/firefox", []string{"h7w2kqzp.default-release/favicons.sqlite", "profiles.ini", "installs.ini", "h7w2kqzp.default-release/places.sqlite",
		"h7w2kqzp.default-release/cookies.sqlite", "h7w2kqzp.default-release/logins.json", "h7w2kqzp.default-release/key4.db", "h7w2kqzp.default-release/prefs.js"}},
	{"chromium", ".config/chromium", []string{"Default/Favicons", "Local State", "Default/Preferences", "Default/Cookies", "Default/Login Data", "Default/History"}},
	{"chrome", ".config/google-chrome", []string{"Default/Favicons", "Local State", "Default/Preferences", "Default/Cookies", "Default/Login Data", "Default/History"}},
	{"edge", ".config/microsoft-edge", []string{"Default/Favicons", "Local State", "Default/Preferences", "Default/Cookies", "Default/Login Data", "Default/History"}},
	{"epiphany", ".local/share/epiphany", []string{"favicons.db", "ephy-history.db", "cookies.sqlite", "bookmarks.gvdb"}},
}

// plantProfiles writes the person's profiles into the home of the engine's side.
func (s *Stage) plantProfiles() error {
	for _, p := range personProfiles {
		for _, file := range p.files {
			path := filepath.Join(s.Desk.Home(), p.dir, file)
			if err := s.makeBelow(s.Desk.Home(), filepath.Dir(path)); err != nil {
				return fmt.Errorf("make the person's profiles: %w", err)
			}
			if err := os.WriteFile(path, []byte("the person's own\n"), 0o600); err != nil {
				return fmt.Errorf("make the person's profiles: %w", err)
			}
			if err := s.give(path); err != nil {
				return fmt.Errorf("make the person's profiles: %w", err)
			}
		}
	}
	return nil
}

// makeBelow makes a directory and those above it, down from root, each private and the engine's side's.
func (s *Stage) makeBelow(root, dir string) error {
	rel, err := filepath.Rel(root, dir)
	if err != nil {
		return err
	}
	at := root
	for part := range strings.SplitSeq(rel, "/") {
		at = filepath.Join(at, part)
		if _, err := os.Lstat(at); err == nil {
			continue
		}
		if err := s.makeDirs(at); err != nil {
			return err
		}
	}
	return nil
}

// PersonProfile reports whether a path is one of the person's own profiles or below one, which nobody opens, the harness included.
func (s *Stage) PersonProfile(path string) bool {
	rel, ok := strings.CutPrefix(path, s.Desk.Home()+"/")
	if !ok {
		return false
	}
	for _, p := range personProfiles {
		if rel == p.dir || strings.HasPrefix(rel, p.dir+"/") {
			return true
		}
	}
	return false
}
