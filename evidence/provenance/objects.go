package provenance

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"sort"
	"strconv"
)

// digest begins the hash of a git object of one kind and size.
func (g *git) digest(kind string, size int64) hash.Hash {
	h := sha1.New()
	if g.format == "sha256" {
		h = sha256.New()
	}
	io.WriteString(h, kind+" "+strconv.FormatInt(size, 10)+"\x00")
	return h
}

// hash is the id of a git object.
func (g *git) hash(kind string, raw []byte) string {
	h := g.digest(kind, int64(len(raw)))
	h.Write(raw)
	return hex.EncodeToString(h.Sum(nil))
}

// size is the length of an object id in bytes.
func (g *git) size() int {
	if g.format == "sha256" {
		return sha256.Size
	}
	return sha1.Size
}

type treeEntry struct{ mode, name, oid string }

// parseTree reads the content of a tree object: "MODE NAME\0" and the raw id, again and again.
func parseTree(raw []byte, size int) ([]treeEntry, error) {
	var entries []treeEntry
	seen := map[string]bool{}
	for len(raw) > 0 {
		head, rest, ok := bytes.Cut(raw, []byte{0})
		mode, name, spaced := bytes.Cut(head, []byte{' '})
		if !ok || !spaced || len(rest) < size {
			return nil, errors.New("cut in the middle of an entry")
		}
		e := treeEntry{mode: string(mode), name: string(name), oid: hex.EncodeToString(rest[:size])}
		switch e.mode {
		case modeFile, modeExec, modeLink, modeGit, modeTree:
		default:
			return nil, fmt.Errorf("mode %.16q of %.80q is unknown", e.mode, e.name)
		}
		if e.name == "" || e.name == "." || e.name == ".." || e.name == ".git" || bytes.ContainsRune(name, '/') || seen[e.name] {
			return nil, fmt.Errorf("name %.80q is not allowed or occurs twice", e.name)
		}
		seen[e.name] = true
		entries = append(entries, e)
		raw = rest[size:]
	}
	return entries, nil
}

// folder is a tree that is built from paths.
type folder struct {
	files   map[string]entry
	folders map[string]*folder
}

func (f *folder) add(parts []string, e entry) {
	if len(parts) == 1 {
		if f.files == nil {
			f.files = map[string]entry{}
		}
		f.files[parts[0]] = e
		return
	}
	if f.folders == nil {
		f.folders = map[string]*folder{}
	}
	sub := f.folders[parts[0]]
	if sub == nil {
		sub = &folder{}
		f.folders[parts[0]] = sub
	}
	sub.add(parts[1:], e)
}

// hash returns the id of the tree. git sorts a folder as if its name ended with a slash.
func (f *folder) hash(g *git) (string, error) {
	var entries []treeEntry
	for name, e := range f.files {
		entries = append(entries, treeEntry{e.mode, name, e.oid})
	}
	for name, sub := range f.folders {
		oid, err := sub.hash(g)
		if err != nil {
			return "", err
		}
		entries = append(entries, treeEntry{modeTree, name, oid})
	}
	key := func(e treeEntry) string {
		if e.mode == modeTree {
			return e.name + "/"
		}
		return e.name
	}
	sort.Slice(entries, func(i, j int) bool { return key(entries[i]) < key(entries[j]) })
	var b bytes.Buffer
	for _, e := range entries {
		raw, err := hex.DecodeString(e.oid)
		if err != nil {
			return "", err
		}
		b.WriteString(e.mode + " " + e.name + "\x00")
		b.Write(raw)
	}
	return g.hash("tree", b.Bytes()), nil
}
