package provenance

import (
	"context"
	"errors"
	"fmt"
	"path"
	"sort"
	"strings"
)

// State is the state of a working tree.
type State string

// The closed list of states.
const (
	// StateClean: every file of the working tree is byte for byte and mode for mode that of the commit, and nothing else is used.
	StateClean State = "clean"
	// StateDirty: it is not; see Dirt.
	StateDirty State = "dirty"
	// StateNone: the folder is in no repository, so no commit can be named.
	StateNone State = "no_repository"
)

// DirtKind says how a working tree differs from its commit.
type DirtKind string

// The closed list of kinds.
const (
	// DirtStaged: the index differs from the commit. DirtUnmerged: the index holds a conflict.
	DirtStaged   DirtKind = "staged"
	DirtUnmerged DirtKind = "unmerged"
	// DirtContent, DirtMode, DirtMissing, DirtType: a file differs in bytes, in its executable bit, is gone, or is something else.
	DirtContent DirtKind = "unstaged_content"
	DirtMode    DirtKind = "unstaged_mode"
	DirtMissing DirtKind = "unstaged_missing"
	DirtType    DirtKind = "unstaged_type"
	// DirtUntracked: a file that the commit does not have and no rule ignores. DirtIgnoredUsed: one that is ignored and would be used
	// by a build or embedded.
	DirtUntracked   DirtKind = "untracked"
	DirtIgnoredUsed DirtKind = "ignored_but_used"
	// DirtSubmodule: a submodule is absent, at another commit, or dirty itself.
	DirtSubmodule DirtKind = "submodule"
	// DirtIndexTrick: the index tells git to overlook a file (assume-unchanged, skip-worktree).
	DirtIndexTrick DirtKind = "index_trick"
	// DirtObject: an object of the repository does not have the digest that it is stored under.
	DirtObject DirtKind = "object_corrupt"
)

// Dirt is one difference. Path is relative to the repository, with slashes.
type Dirt struct {
	Kind   DirtKind `json:"kind"`
	Path   string   `json:"path"`
	Detail string   `json:"detail"`
}

// Repository is the commit and how the working tree compares with it.
type Repository struct {
	State State `json:"state"`
	// Commit is HEAD; Parents are all its parents, two or more for a merge. Tree is the commit's tree.
	Commit  string   `json:"commit"`
	Parents []string `json:"parents"`
	Tree    string   `json:"tree"`
	// ObjectFormat is "sha1" or "sha256".
	ObjectFormat string `json:"object_format"`
	// Files counts the files of the commit, Objects the commit and tree objects that were re-hashed.
	Files   int `json:"files"`
	Objects int `json:"objects"`
	// Rehashed is the tree's digest as computed from the working tree alone; it equals Tree when no tracked file differs.
	Rehashed string `json:"rehashed_tree"`
	// Dirt lists the first [MaxDirt] differences in order of path; DirtCount counts all.
	Dirt      []Dirt `json:"dirt"`
	DirtCount int    `json:"dirt_count"`
	// Message explains StateNone.
	Message string `json:"message,omitempty"`
}

// MaxDirt is how many differences are listed.
const MaxDirt = 200

// ErrNoGit is returned where a repository exists and no git can be run.
var ErrNoGit = errors.New("git is not installed, so the repository cannot be read")

// Repo compares the working tree around dir with its commit. A folder in no repository is no error: State says so. Hostile repositories
// are bounded: git runs without hooks, filters, replace refs or any configuration of a user or the system that could run a program.
func Repo(ctx context.Context, dir string) (Repository, error) {
	g, err := openGit(ctx, dir)
	if errors.Is(err, errNoRepository) {
		return Repository{State: StateNone, Parents: []string{}, Dirt: []Dirt{},
			Message: "no git repository here: the harness's commit cannot be named, and no release policy accepts the run"}, nil
	}
	if err != nil {
		return Repository{}, err
	}
	return g.compare(ctx, 0)
}

// compare does the whole comparison. depth counts submodules inside submodules.
func (g *git) compare(ctx context.Context, depth int) (Repository, error) {
	r := Repository{State: StateDirty, ObjectFormat: g.format, Dirt: []Dirt{}, Parents: []string{}}
	c := &comparison{git: g, repo: &r, want: map[string]entry{}, depth: depth}
	if err := c.commit(ctx); err != nil {
		return Repository{}, err
	}
	if err := c.index(ctx); err != nil {
		return Repository{}, err
	}
	if err := c.workTree(ctx); err != nil {
		return Repository{}, err
	}
	if err := c.rehash(); err != nil {
		return Repository{}, err
	}
	sort.SliceStable(r.Dirt, func(i, j int) bool {
		a, b := r.Dirt[i], r.Dirt[j]
		return a.Path < b.Path || a.Path == b.Path && a.Kind < b.Kind
	})
	r.DirtCount = len(r.Dirt)
	if r.DirtCount > MaxDirt {
		r.Dirt = r.Dirt[:MaxDirt]
	}
	if r.DirtCount == 0 {
		if r.Rehashed != r.Tree {
			return Repository{}, fmt.Errorf("tree %s re-hashes to %s although no file differs", r.Tree, r.Rehashed)
		}
		r.State = StateClean
	}
	return r, nil
}

// entry is one file of a tree: mode in octal as git writes it, and object id.
type entry struct{ mode, oid string }

const (
	modeFile  = "100644"
	modeExec  = "100755"
	modeLink  = "120000"
	modeGit   = "160000"
	modeTree  = "40000"
	maxFiles  = 500_000
	maxDepth  = 4
	maxFolder = 64
)

type comparison struct {
	git   *git
	repo  *Repository
	want  map[string]entry // the commit's files
	have  map[string]entry // the working tree's state of the same paths, re-hashed
	depth int
}

func (c *comparison) dirt(kind DirtKind, path, format string, args ...any) {
	c.repo.Dirt = append(c.repo.Dirt, Dirt{Kind: kind, Path: bounded(path), Detail: bounded(fmt.Sprintf(format, args...))})
}

// commit reads HEAD and all its trees, each re-hashed.
func (c *comparison) commit(ctx context.Context) error {
	head, err := c.git.line(ctx, "rev-parse", "--verify", "HEAD^{commit}")
	if err != nil {
		return fmt.Errorf("repository has no commit: %w", err)
	}
	batch, err := c.git.batch(ctx)
	if err != nil {
		return err
	}
	defer batch.close()
	raw, err := c.object(batch, head, "commit")
	if err != nil {
		return err
	}
	c.repo.Commit = head
	header, _, _ := strings.Cut(string(raw), "\n\n")
	for line := range strings.Lines(header) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch key {
		case "tree":
			c.repo.Tree = value
		case "parent":
			c.repo.Parents = append(c.repo.Parents, value)
		}
	}
	return c.tree(batch, c.repo.Tree, "", 0)
}

func (c *comparison) object(batch *batch, oid, kind string) ([]byte, error) {
	raw, err := batch.read(oid, kind)
	if err != nil {
		return nil, err
	}
	c.repo.Objects++
	if got := c.git.hash(kind, raw); got != oid {
		c.dirt(DirtObject, oid, "%s re-hashes to %s", kind, got)
	}
	return raw, nil
}

func (c *comparison) tree(batch *batch, oid, under string, depth int) error {
	if depth > maxFolder {
		return fmt.Errorf("tree: folders nested deeper than %d", maxFolder)
	}
	raw, err := c.object(batch, oid, "tree")
	if err != nil {
		return err
	}
	entries, err := parseTree(raw, c.git.size())
	if err != nil {
		return fmt.Errorf("tree %s: %w", oid, err)
	}
	for _, e := range entries {
		name := path.Join(under, e.name)
		if e.mode == modeTree {
			if err := c.tree(batch, e.oid, name, depth+1); err != nil {
				return err
			}
			continue
		}
		if c.want[name] = (entry{e.mode, e.oid}); len(c.want) > maxFiles {
			return fmt.Errorf("tree: more than %d files", maxFiles)
		}
		c.repo.Files++
	}
	return nil
}

// index compares the index with the commit and finds entries that git was told to overlook.
func (c *comparison) index(ctx context.Context) error {
	raw, err := c.git.output(ctx, "ls-files", "-z", "-v", "--stage")
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for line := range strings.SplitSeq(strings.TrimSuffix(string(raw), "\x00"), "\x00") {
		if line == "" {
			continue
		}
		head, name, ok := strings.Cut(line, "\t")
		f := strings.Fields(head)
		if !ok || len(f) != 4 {
			return fmt.Errorf("index: cannot read %.80q", line)
		}
		tag, got, stage := f[0], entry{f[1], f[2]}, f[3]
		seen[name] = true
		switch {
		case tag == "S" || tag == "s":
			c.dirt(DirtIndexTrick, name, "skip-worktree")
		case tag != strings.ToUpper(tag):
			c.dirt(DirtIndexTrick, name, "assume-unchanged")
		}
		want, tracked := c.want[name]
		switch {
		case stage != "0":
			c.dirt(DirtUnmerged, name, "stage %s", stage)
		case !tracked:
			c.dirt(DirtStaged, name, "added")
		case got.mode != want.mode:
			c.dirt(DirtStaged, name, "mode %s, the commit has %s", got.mode, want.mode)
		case got.oid != want.oid:
			c.dirt(DirtStaged, name, "content differs from the commit")
		}
	}
	for name := range c.want {
		if !seen[name] {
			c.dirt(DirtStaged, name, "removed")
		}
	}
	return nil
}

// rehash builds the tree objects of the working tree's files anew and takes the digest of the topmost.
func (c *comparison) rehash() error {
	root := &folder{}
	for name, e := range c.have {
		root.add(strings.Split(name, "/"), e)
	}
	oid, err := root.hash(c.git)
	c.repo.Rehashed = oid
	return err
}
