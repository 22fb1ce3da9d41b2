package provenance

import (
	"errors"
	"os"
	"os/user"
	"regexp"
	"sort"
	"strings"
)

// scrubber takes out of text what names this machine: paths, by role where they have one, host and user name, ports and endpoints.
type scrubber struct {
	roles []struct{ path, role string }
	names []*regexp.Regexp
}

var (
	portFlag     = regexp.MustCompile(`(?i)([a-z-]*port[a-z-]*[= ])\d+`)
	endpoint     = regexp.MustCompile(`(?i)(?:\b(?:wss?|https?)://)?(?:\blocalhost|\b\d{1,3}(?:\.\d{1,3}){3}|\[[0-9a-f:]+\]):\d+(?:/[^\s"']*)?`)
	absolutePath = regexp.MustCompile(`(^|[^A-Za-z0-9_.~}/-])(?:[A-Za-z]:)?(?:/[^/\s"',:;=&|<>]+)+/?`)
	homePath     = regexp.MustCompile(`~[A-Za-z0-9_.-]*/[^\s"',:;]*`)
)

func newScrubber(roles map[string]string) *scrubber {
	s := &scrubber{}
	for path, role := range roles {
		if path != "" && path != "/" {
			s.roles = append(s.roles, struct{ path, role string }{path, role})
		}
	}
	// The longest path first, so that a folder inside another keeps its own role.
	sort.Slice(s.roles, func(i, j int) bool {
		a, b := s.roles[i], s.roles[j]
		return len(a.path) > len(b.path) || len(a.path) == len(b.path) && a.path < b.path
	})
	host, _ := os.Hostname()
	s.name(host)
	if u, err := user.Current(); err == nil {
		s.name(u.Username)
	}
	return s
}

func (s *scrubber) name(n string) {
	if len(n) >= 2 {
		s.names = append(s.names, regexp.MustCompile(`(?i)(^|[^A-Za-z0-9_])`+regexp.QuoteMeta(n)+`($|[^A-Za-z0-9_])`))
	}
}

func (s *scrubber) text(t string) string {
	for _, r := range s.roles {
		t = strings.ReplaceAll(t, r.path, "{"+r.role+"}")
	}
	t = endpoint.ReplaceAllString(t, "{endpoint}")
	t = portFlag.ReplaceAllString(t, "${1}{port}")
	t = homePath.ReplaceAllString(t, "{path}")
	t = absolutePath.ReplaceAllString(t, "${1}{path}")
	for _, n := range s.names {
		// Twice, for neighbours share the byte between them.
		t = n.ReplaceAllString(n.ReplaceAllString(t, "${1}{name}${2}"), "${1}{name}${2}")
	}
	return bounded(t)
}

// word is text for a key or a word of a closed list.
func (s *scrubber) word(t string) string { return s.text(t) }

func (s *scrubber) argv(argv []string) []string {
	out := make([]string, 0, len(argv))
	for _, a := range argv {
		out = append(out, s.text(a))
	}
	return out
}

func (s *scrubber) err(err error) error { return errors.New(s.text(err.Error())) }
