package matrix

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/engine-acceptance/acceptance/fixtures/pages"
	"github.com/engine-acceptance/acceptance/matrix/canonical"
	"github.com/engine-acceptance/acceptance/matrix/strict"
)

const (
	// maxFiles is the greatest number of data files of one matrix.
	maxFiles = 5000
	// maxRows is the greatest number of rows of one matrix, axes filled in.
	maxRows = 50_000
)

// Matrix is everything that was loaded. It is immutable and safe for concurrent use.
type Matrix struct {
	requirements []Requirement
	byID         map[RequirementID]Requirement
	environments []Environment
	profiles     *Profiles
	engines      map[string]*EngineFile
	policies     map[string]*Policy
	rows         []Row
	files        []file
	digest       string
}

// file is one data file with its digest.
type file struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
}

// Load reads a matrix folder: requirements.yaml, profiles.yaml, environments.yaml, engines/*.yaml, policies/*.yaml and
// rows/CLAIM/*.yaml. Every problem of every file is reported at once: the error is then a [*strict.Error], or else that of the file
// system. triggers gives the refusal codes, see package matrix/refusal.
//
// What a row has to expect of the pages that it uses is taken from the pages that the program was built with.
func Load(fsys fs.FS, triggers Triggers) (*Matrix, error) {
	known, err := embeddedPages()
	if err != nil {
		return nil, fmt.Errorf("load matrix: %w", err)
	}
	m, _, err := load(fsys, triggers, known)
	return m, err
}

var embeddedPages = sync.OnceValues(func() (pages.Set, error) { return pages.Read(pages.Files) })

// load gives the reader, too, with which single row files can be read again.
func load(fsys fs.FS, triggers Triggers, known pages.Set) (*Matrix, *reader, error) {
	if triggers == nil {
		return nil, nil, errors.New("load matrix: no refusal triggers")
	}
	var problems strict.Problems
	l := &loader{fsys: fsys, problems: &problems}
	m := &Matrix{byID: map[RequirementID]Requirement{}, engines: map[string]*EngineFile{}, policies: map[string]*Policy{}}
	if top, ok := l.read("environments.yaml"); ok {
		m.environments = readEnvironments(top)
	}
	environments := make([]string, len(m.environments))
	for i, e := range m.environments {
		environments[i] = string(e.ID)
	}
	if top, ok := l.read("requirements.yaml"); ok {
		m.requirements = readRequirements(top, environments)
	}
	order := make([]string, len(m.requirements))
	for i, r := range m.requirements {
		order[i] = string(r.ID)
		m.byID[r.ID] = r
	}
	if top, ok := l.read("profiles.yaml"); ok {
		m.profiles = readProfiles(top, m.byID, order)
	}
	for _, name := range l.list("engines") {
		if top, ok := l.read("engines/" + name); ok {
			stem := strings.TrimSuffix(name, ".yaml")
			e := readEngine(top, engineContext{name: stem, requirements: m.byID, order: order, environments: environments, profiles: m.profiles})
			e.SHA256 = l.files[len(l.files)-1].SHA256
			m.engines[stem] = e
		}
	}
	for _, name := range l.list("policies") {
		if top, ok := l.read("policies/" + name); ok {
			stem := strings.TrimSuffix(name, ".yaml")
			p := readPolicy(top, stem, engineContext{requirements: m.byID, order: order, environments: environments, profiles: m.profiles})
			p.SHA256 = l.files[len(l.files)-1].SHA256
			m.policies[stem] = p
		}
	}
	r := &reader{requirements: m.byID, order: order, environments: environments, triggers: triggers, pages: known, stems: map[string]string{}}
	if m.profiles != nil {
		r.features = m.profiles.FeatureNames()
	}
	for _, claim := range l.claims() {
		for _, name := range l.list("rows/" + string(claim)) {
			top, ok := l.read("rows/" + string(claim) + "/" + name)
			if !ok {
				continue
			}
			r.file(top, claim, strings.TrimSuffix(name, ".yaml"))
			if len(r.rows) > maxRows {
				top.Bad("more than %d rows", maxRows)
			}
		}
	}
	m.rows = r.rows
	if l.err != nil {
		return nil, nil, fmt.Errorf("load matrix: %w", l.err)
	}
	if err := problems.Err(); err != nil {
		return nil, nil, err
	}
	sort.Slice(m.rows, func(i, j int) bool { return m.rows[i].ID < m.rows[j].ID })
	sort.Slice(l.files, func(i, j int) bool { return l.files[i].Path < l.files[j].Path })
	m.files = l.files
	digest, err := canonical.Digest(m.files)
	if err != nil {
		return nil, nil, fmt.Errorf("load matrix: %w", err)
	}
	m.digest = digest
	return m, r, nil
}

// loader reads files with their bounds and remembers their digests.
type loader struct {
	fsys     fs.FS
	problems *strict.Problems
	files    []file
	// err is the first fault of the file system, which is not a problem of a file's text.
	err error
}

func (l *loader) fail(err error) {
	if l.err == nil {
		l.err = err
	}
}

// read reads one file. A file that is not there, or no file, is a problem of the matrix.
func (l *loader) read(name string) (strict.Node, bool) {
	f, err := l.fsys.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		l.problems.Add(name, 1, "", "the file is missing")
		return strict.Node{}, false
	}
	if err != nil {
		l.fail(err)
		return strict.Node{}, false
	}
	defer f.Close() // read only: nothing is lost with its error
	if info, err := f.Stat(); err != nil {
		l.fail(err)
		return strict.Node{}, false
	} else if !info.Mode().IsRegular() {
		l.problems.Add(name, 1, "", "not a regular file")
		return strict.Node{}, false
	}
	if len(l.files) >= maxFiles {
		l.problems.Add(name, 1, "", "more than %d files", maxFiles)
		return strict.Node{}, false
	}
	data, err := io.ReadAll(io.LimitReader(f, strict.MaxBytes+1))
	if err != nil {
		l.fail(err)
		return strict.Node{}, false
	}
	if len(data) > strict.MaxBytes {
		l.problems.Add(name, 1, "", "the file has more than %d bytes", strict.MaxBytes)
		return strict.Node{}, false
	}
	sum := sha256.Sum256(data)
	l.files = append(l.files, file{Path: name, SHA256: hex.EncodeToString(sum[:])})
	return strict.Read(name, data, l.problems)
}

// list lists the .yaml files of a folder; whatever else lies there is a problem, for it would be left out silently.
func (l *loader) list(dir string) []string {
	entries, err := fs.ReadDir(l.fsys, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		l.fail(err)
		return nil
	}
	var names []string
	for _, e := range entries {
		full := path.Join(dir, e.Name())
		switch {
		case e.IsDir():
			l.problems.Add(full, 1, "", "a folder is not read here")
		case !e.Type().IsRegular():
			l.problems.Add(full, 1, "", "not a regular file")
		case path.Ext(e.Name()) != ".yaml":
			l.problems.Add(full, 1, "", "not read; a data file is named *.yaml")
		default:
			names = append(names, e.Name())
		}
	}
	return names
}

// claims lists the folders of rows.
func (l *loader) claims() []Claim {
	entries, err := fs.ReadDir(l.fsys, "rows")
	if errors.Is(err, fs.ErrNotExist) {
		l.problems.Add("rows", 1, "", "the folder is missing")
		return nil
	}
	if err != nil {
		l.fail(err)
		return nil
	}
	var claims []Claim
	for _, e := range entries {
		if !e.IsDir() || !slices.Contains(Claims, Claim(e.Name())) {
			l.problems.Add("rows/"+e.Name(), 1, "", "not read; rows live in folders named after their claim%s", strict.Hint(e.Name(), texts(Claims)))
			continue
		}
		claims = append(claims, Claim(e.Name()))
	}
	return claims
}

// Requirements returns every requirement, in file order.
func (m *Matrix) Requirements() []Requirement { return slices.Clone(m.requirements) }

// Requirement looks one requirement up.
func (m *Matrix) Requirement(id RequirementID) (Requirement, bool) {
	r, ok := m.byID[id]
	return r, ok
}

// Profiles returns the profiles; the caller does not change them.
func (m *Matrix) Profiles() *Profiles { return m.profiles }

// Environments returns every environment, in file order.
func (m *Matrix) Environments() []Environment { return slices.Clone(m.environments) }

// Environment looks one environment up; an unknown one is an error with the nearest.
func (m *Matrix) Environment(id EnvironmentID) (Environment, error) {
	known := make([]string, len(m.environments))
	for i, e := range m.environments {
		if e.ID == id {
			return e, nil
		}
		known[i] = string(e.ID)
	}
	return Environment{}, fmt.Errorf("unknown environment %q%s", bounded(string(id)), strict.Hint(string(id), known))
}

// EngineFile looks an engine file up by name; an unknown one is an error with the nearest. The caller does not change it.
func (m *Matrix) EngineFile(name string) (*EngineFile, error) {
	if e, ok := m.engines[name]; ok {
		return e, nil
	}
	return nil, fmt.Errorf("unknown engine %q%s", bounded(name), strict.Hint(name, sorted(m.engines)))
}

// Engines lists the names of the engine files, sorted.
func (m *Matrix) Engines() []string { return sorted(m.engines) }

// Policy looks a policy up by name; an unknown one is an error with the nearest. The caller does not change it.
func (m *Matrix) Policy(name string) (*Policy, error) {
	if p, ok := m.policies[name]; ok {
		return p, nil
	}
	return nil, fmt.Errorf("unknown policy %q%s", bounded(name), strict.Hint(name, sorted(m.policies)))
}

// Policies lists the names of the policies, sorted.
func (m *Matrix) Policies() []string { return sorted(m.policies) }

// Rows returns every row with its axes filled in, sorted by id.
func (m *Matrix) Rows() []Row { return slices.Clone(m.rows) }

// Digest is the sha256 over the names and digests of every data file, hex.
func (m *Matrix) Digest() string { return m.digest }

func sorted[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Report is what [Lint] found beside problems.
type Report struct {
	Files, Rows, Requirements int
	// Uncovered are the requirements without any row, in file order; CoreUncovered are those of them that are core.
	Uncovered     []RequirementID
	CoreUncovered []RequirementID
	// Expectations counts what was taken out of a row, one at a time, to see that its lack is a problem.
	Expectations int
}

// Lint loads a matrix for its problems alone and says what it covers. Beyond what [Load] reports it takes every expectation out of every row,
// one at a time: one that is not missed is a problem, too. known are the fixture pages; nil means those that the program was built with.
func Lint(fsys fs.FS, triggers Triggers, known pages.Set) (*Report, error) {
	if known == nil {
		var err error
		if known, err = embeddedPages(); err != nil {
			return nil, fmt.Errorf("lint matrix: %w", err)
		}
	}
	m, reader, err := load(fsys, triggers, known)
	if err != nil {
		return nil, err
	}
	r := &Report{Files: len(m.files), Rows: len(m.rows), Requirements: len(m.requirements)}
	removed, err := removals(fsys, m, reader)
	if err != nil {
		return nil, fmt.Errorf("lint matrix: %w", err)
	}
	var problems strict.Problems
	for _, x := range removed {
		r.Expectations++
		if len(x.Problems) == 0 {
			problems.Add(x.File, x.Line, x.Path, "%s: nothing misses it when it is taken out; leave it out, or let its requirement ask for it "+
				"(expects, receipts, side_effects in requirements.yaml), or let its page say that the control does it (does in the page's truth)", x.Row)
		}
	}
	if err := problems.Err(); err != nil {
		return nil, err
	}
	has := map[RequirementID]bool{}
	for _, row := range m.rows {
		has[row.Requirement] = true
	}
	for _, req := range m.requirements {
		if has[req.ID] {
			continue
		}
		r.Uncovered = append(r.Uncovered, req.ID)
		if m.profiles.isCore(req.ID) {
			r.CoreUncovered = append(r.CoreUncovered, req.ID)
		}
	}
	return r, nil
}
