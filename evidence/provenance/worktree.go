package provenance

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// workTree hashes every tracked file and looks at every other one. It walks the folder itself: what git is told to overlook, it sees.
func (c *comparison) workTree(ctx context.Context) error {
	c.have = map[string]entry{}
	for name, want := range c.want {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := c.tracked(ctx, name, want); err != nil {
			return err
		}
	}
	others, err := c.others(ctx)
	if err != nil {
		return err
	}
	ignored, err := c.git.ignored(ctx, others)
	if err != nil {
		return err
	}
	folders := trackedFolders(c.want)
	for _, name := range others {
		switch {
		case !ignored[name]:
			c.dirt(DirtUntracked, name, "not in the commit")
		case used(name, folders):
			c.dirt(DirtIgnoredUsed, name, "ignored, and a build would read it")
		}
	}
	return nil
}

func (c *comparison) tracked(ctx context.Context, name string, want entry) error {
	file := filepath.Join(c.git.root, filepath.FromSlash(name))
	info, err := os.Lstat(file)
	if errors.Is(err, fs.ErrNotExist) || isNotDir(err) {
		if want.mode == modeGit {
			c.dirt(DirtSubmodule, name, "absent")
			return nil
		}
		c.dirt(DirtMissing, name, "not in the working tree")
		return nil
	}
	if err != nil {
		return fmt.Errorf("working tree: %q: %w", name, errors.Unwrap(err))
	}
	if want.mode == modeGit {
		return c.submodule(ctx, name, file, want)
	}
	got := entry{}
	switch {
	case info.Mode().IsRegular():
		got.mode = modeFile
		if info.Mode()&0o100 != 0 {
			got.mode = modeExec
		}
		got.oid, err = c.git.hashBlob(ctx, file, info.Size())
	case info.Mode()&fs.ModeSymlink != 0:
		got.mode = modeLink
		var to string
		if to, err = os.Readlink(file); err == nil {
			got.oid = c.git.hash("blob", []byte(to))
		}
	default:
		c.dirt(DirtType, name, "neither a file nor a link")
		return nil
	}
	if err != nil {
		return fmt.Errorf("working tree: %q: %w", name, err)
	}
	c.have[name] = got
	switch {
	case (got.mode == modeLink) != (want.mode == modeLink):
		c.dirt(DirtType, name, "mode %s, the commit has %s", got.mode, want.mode)
	case got.mode != want.mode:
		c.dirt(DirtMode, name, "mode %s, the commit has %s", got.mode, want.mode)
	}
	if got.oid != want.oid && (got.mode == modeLink) == (want.mode == modeLink) {
		c.dirt(DirtContent, name, "content differs from the commit")
	}
	return nil
}

func (c *comparison) submodule(ctx context.Context, name, file string, want entry) error {
	if c.depth >= maxDepth {
		return fmt.Errorf("submodules nested deeper than %d", maxDepth)
	}
	if _, err := os.Lstat(filepath.Join(file, ".git")); err != nil {
		c.dirt(DirtSubmodule, name, "absent")
		return nil
	}
	sub, err := openGit(ctx, file)
	if err != nil {
		c.dirt(DirtSubmodule, name, "cannot be read")
		return nil
	}
	r, err := sub.compare(ctx, c.depth+1)
	if err != nil {
		return fmt.Errorf("submodule %q: %w", name, err)
	}
	c.have[name] = entry{modeGit, r.Commit}
	if r.Commit != want.oid {
		c.dirt(DirtSubmodule, name, "at %s, the commit has %s", r.Commit, want.oid)
	}
	for _, d := range r.Dirt {
		c.dirt(DirtSubmodule, path.Join(name, d.Path), "%s: %s", d.Kind, d.Detail)
	}
	c.repo.Objects += r.Objects
	return nil
}

// hashBlob hashes a file as git would store it without any filter.
func (g *git) hashBlob(ctx context.Context, file string, size int64) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", errors.Unwrap(err)
	}
	defer f.Close()
	h := g.digest("blob", size)
	n, err := io.Copy(h, &contextReader{ctx, f})
	if err != nil {
		return "", err
	}
	if n != size {
		return "", fmt.Errorf("read %d bytes of %d: the file changed", n, size)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// others lists every file of the working tree that the commit does not have, ignored or not.
func (c *comparison) others(ctx context.Context) ([]string, error) {
	var names []string
	err := filepath.WalkDir(c.git.root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		rel, err := filepath.Rel(c.git.root, file)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(rel)
		if name == "." {
			return nil
		}
		want, tracked := c.want[name]
		switch {
		case name == ".git":
			if d.IsDir() {
				return fs.SkipDir
			}
		case d.IsDir() && tracked && want.mode == modeGit:
			return fs.SkipDir // looked at as a repository of its own
		case d.IsDir() && d.Name() == ".git":
			names = append(names, name)
			return fs.SkipDir
		case !d.IsDir() && !tracked:
			names = append(names, name)
		}
		if len(names) > maxFiles {
			return fmt.Errorf("more than %d files that the commit does not have", maxFiles)
		}
		return nil
	})
	if err != nil {
		var p *fs.PathError
		if errors.As(err, &p) {
			err = p.Err
		}
		return nil, fmt.Errorf("working tree: %w", err)
	}
	return names, nil
}

// sources are the extensions that a Go build compiles wherever a package may be; data those that a package may embed or a run may read.
var (
	sources = map[string]bool{".go": true, ".s": true, ".c": true, ".h": true, ".cc": true, ".cpp": true, ".hpp": true, ".m": true, ".syso": true,
		".mod": true, ".sum": true, ".work": true}
	data = map[string]bool{".yaml": true, ".yml": true, ".json": true, ".html": true, ".htm": true, ".js": true, ".mjs": true, ".css": true,
		".svg": true, ".png": true, ".txt": true, ".tmpl": true, ".xml": true, ".sh": true, ".py": true, ".wasm": true}
)

// used says whether an ignored file would still be used: Go source anywhere, other data below a folder that holds tracked files (the
// repository's own folder does not count, for that is where output folders lie; a file straight in it does), and anything below vendor.
func used(name string, folders map[string]bool) bool {
	ext := strings.ToLower(path.Ext(name))
	if sources[ext] || strings.HasPrefix(name, "vendor/") {
		return true
	}
	if !data[ext] {
		return false
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if folders[dir] {
			return true
		}
	}
	return path.Dir(name) == "."
}

// trackedFolders returns every folder, but the topmost, that holds a tracked file at any depth.
func trackedFolders(files map[string]entry) map[string]bool {
	folders := map[string]bool{}
	for name := range files {
		for dir := path.Dir(name); dir != "." && !folders[dir]; dir = path.Dir(dir) {
			folders[dir] = true
		}
	}
	return folders
}
