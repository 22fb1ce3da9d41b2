package bundle

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/matrix/canonical"
)

// The fixed names of a bundle.
const (
	PlanFile       = "plan.json"
	ProvenanceFile = "provenance.json"
	LogFile        = "log.jsonl"
	ManifestFile   = "manifest.json"
	StatementFile  = "statement.intoto.jsonl"
	JUnitFile      = "junit.xml"
	SummaryFile    = "summary.md"
	RowsDir        = "rows"
	ReportDir      = "report"

	RowFile          = "row.json"
	ObservationsFile = "observations.jsonl"
	VerdictFile      = "verdict.json"
)

// Formats of the files that this package writes; every file names its own.
const (
	ManifestFormat = "acceptance.manifest/v1"
	RowFormat      = "acceptance.row/v1"
	VerdictFormat  = "acceptance.verdict/v1"
	LogFormat      = "acceptance.log/v2"
)

// Views are the files that a row may hold beside row.json, observations.jsonl and verdict.json, each with the largest size that is written
// or read, in bytes. The list is closed: a file outside it is an error of the bundle.
var Views = map[string]int64{
	"journal.jsonl":    64 << 20,
	"desktop.jsonl":    256 << 20,
	"trajectory.jsonl": 64 << 20,
	"protocol.jsonl":   256 << 20,
	"engine.log":       64 << 20,
	"telemetry.jsonl":  64 << 20,
	"masks.json":       16 << 20,
	"before.png":       64 << 20,
	"after.png":        64 << 20,
	"film.mp4":         2 << 30,
	"frames.jsonl":     64 << 20,
}

// Bounds of a bundle. What is beyond them is refused by writer and verifier alike.
const (
	MaxFiles       = 200_000
	MaxDocument    = 64 << 20 // one JSON document
	MaxLine        = 1 << 20  // one line of observations.jsonl
	MaxObserved    = 256 << 20
	MaxLog         = 256 << 20
	MaxReport      = 256 << 20 // one file of report/, and junit.xml, summary.md
	MaxAttempts    = 99
	MaxName        = 200 // one path element, after escaping
	MaxPath        = 900 // a path inside the bundle
	maxReportDepth = 8
)

// Size returns the largest allowed size of the file at a slash-separated path inside a bundle, and false when no such file may exist.
func Size(name string) (int64, bool) {
	switch name {
	case PlanFile, ProvenanceFile, ManifestFile:
		return MaxDocument, true
	case StatementFile:
		return 64 << 10, true
	case LogFile:
		return MaxLog, true
	case JUnitFile, SummaryFile:
		return MaxReport, true
	}
	if rest, ok := strings.CutPrefix(name, ReportDir+"/"); ok {
		return MaxReport, reportName(rest)
	}
	place, file, err := SplitRow(name)
	if err != nil || place == (Place{}) {
		return 0, false
	}
	switch file {
	case RowFile, VerdictFile:
		return MaxDocument, true
	case ObservationsFile:
		return MaxObserved, true
	}
	n, ok := Views[file]
	return n, ok
}

// reportName allows plain relative names: letters, digits, dots, dashes, underscores, each element not beginning with a dot.
func reportName(name string) bool {
	parts := strings.Split(name, "/")
	if len(parts) > maxReportDepth || len(name) > MaxPath {
		return false
	}
	for _, p := range parts {
		if p == "" || p[0] == '.' || len(p) > MaxName {
			return false
		}
		for i := range len(p) {
			if c := p[i]; !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '-' || c == '_') {
				return false
			}
		}
	}
	return true
}

// Place is one attempt of one row.
type Place struct {
	Product     string
	Environment matrix.EnvironmentID
	Row         matrix.RowID
	// Attempt counts from 1.
	Attempt int
}

// PlaceOf returns where an attempt at a contract belongs.
func PlaceOf(c matrix.Contract, attempt int) Place {
	return Place{Product: string(c.Product), Environment: c.Environment, Row: c.ID, Attempt: attempt}
}

// Path returns the slash-separated folder of the attempt inside a bundle. It refuses what [PathOf] refuses.
func (p Place) Path() (string, error) {
	row, err := p.RowPath()
	if err != nil {
		return "", err
	}
	if p.Attempt < 1 || p.Attempt > MaxAttempts {
		return "", fmt.Errorf("attempt %d: want 1 to %d", p.Attempt, MaxAttempts)
	}
	return path.Join(row, "attempt-"+strconv.Itoa(p.Attempt)), nil
}

// RowPath returns the folder that holds all attempts of the row.
func (p Place) RowPath() (string, error) {
	elements := []string{RowsDir}
	for _, id := range []string{p.Product, string(p.Environment), string(p.Row)} {
		e, err := escape(id)
		if err != nil {
			return "", err
		}
		elements = append(elements, e)
	}
	full := path.Join(elements...)
	if len(full) > MaxPath {
		return "", fmt.Errorf("path of row %.80q has %d bytes, want at most %d", p.Row, len(full), MaxPath)
	}
	return full, nil
}

// SplitRow is the inverse of [Place.Path] for a file inside an attempt: "rows/P/E/R/attempt-1/row.json" gives the place and "row.json".
// Names that [PathOf] would not have written are an error.
func SplitRow(name string) (Place, string, error) {
	parts := strings.Split(name, "/")
	if len(parts) != 6 || parts[0] != RowsDir {
		return Place{}, "", fmt.Errorf("%.120q is no file of a row", name)
	}
	var ids [3]string
	for i := range ids {
		id, err := unescape(parts[i+1])
		if err != nil {
			return Place{}, "", err
		}
		ids[i] = id
	}
	number, ok := strings.CutPrefix(parts[4], "attempt-")
	attempt, err := strconv.Atoi(number)
	if !ok || err != nil || attempt < 1 || attempt > MaxAttempts || strconv.Itoa(attempt) != number {
		return Place{}, "", fmt.Errorf("%.120q: want attempt-1 to attempt-%d", parts[4], MaxAttempts)
	}
	return Place{Product: ids[0], Environment: matrix.EnvironmentID(ids[1]), Row: matrix.RowID(ids[2]), Attempt: attempt}, parts[5], nil
}

// PathOf returns the path element for a row id: lower-case letters, digits and - _ . [ ] = , stand for themselves (a leading or trailing dot
// does not), every other byte is %xx in lower-case hex. So two ids never share a name, also where a file system folds case or Unicode
// forms, and no name is special to a shell's option parser or to a file system. Empty ids, control characters, invalid UTF-8, a leading
// dash and ids whose name would exceed [MaxName] bytes are refused.
func PathOf(id matrix.RowID) (string, error) { return escape(string(id)) }

// RowIDOf is the inverse of [PathOf]. Names that PathOf does not write are an error.
func RowIDOf(element string) (matrix.RowID, error) {
	id, err := unescape(element)
	return matrix.RowID(id), err
}

func escape(id string) (string, error) {
	if id == "" || !utf8.ValidString(id) || id[0] == '-' {
		return "", fmt.Errorf("name %.80q: want valid UTF-8 that is not empty and does not begin with a dash", id)
	}
	var b strings.Builder
	for i := range len(id) {
		c := id[i]
		switch {
		case c < 0x20 || c == 0x7f:
			return "", fmt.Errorf("name %.80q holds a control character", id)
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', strings.IndexByte("-_[]=,", c) >= 0, c == '.' && i > 0 && i < len(id)-1:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02x", c)
		}
	}
	if b.Len() > MaxName {
		return "", fmt.Errorf("name %.80q has %d bytes when escaped, want at most %d", id, b.Len(), MaxName)
	}
	return b.String(), nil
}

func unescape(element string) (string, error) {
	var b []byte
	for i := 0; i < len(element); i++ {
		if element[i] != '%' {
			b = append(b, element[i])
			continue
		}
		if i+2 >= len(element) {
			return "", fmt.Errorf("name %.120q: cut escape", element)
		}
		c, err := strconv.ParseUint(element[i+1:i+3], 16, 8)
		if err != nil {
			return "", fmt.Errorf("name %.120q: bad escape", element)
		}
		b = append(b, byte(c))
		i += 2
	}
	if again, err := escape(string(b)); err != nil || again != element {
		return "", fmt.Errorf("name %.120q is not written so", element)
	}
	return string(b), nil
}

// Manifest is the content of manifest.json: every file but the manifest and the statement, sorted by path.
type Manifest struct {
	Format string `json:"format"`
	// Plan is the plan's digest.
	Plan string `json:"plan_digest"`
	// Signer is the key id of who signed, or "unsigned". It keeps a statement from being taken away unseen.
	Signer string      `json:"signer"`
	Files  []FileEntry `json:"files"`
}

// Unsigned is the signer of a bundle that nobody vouches for.
const Unsigned = "unsigned"

// FileEntry is one file of a manifest. Path has slashes, Size is in bytes, SHA256 in lower-case hex.
type FileEntry struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// RowDocument is the content of row.json.
type RowDocument struct {
	Format   string          `json:"format"`
	Plan     string          `json:"plan_digest"`
	Attempt  int             `json:"attempt"`
	Contract matrix.Contract `json:"contract"`
}

// VerdictDocument is the content of verdict.json.
type VerdictDocument struct {
	Format  string           `json:"format"`
	Verdict evidence.Verdict `json:"verdict"`
}

// Event is the kind of a log entry.
type Event string

// The closed list of events.
const (
	EventStart    Event = "start"
	EventRowBegin Event = "row_begin"
	EventRowEnd   Event = "row_end"
	EventNote     Event = "note"
	EventFinish   Event = "finish"
)

// Entry is one entry of the run log. Wall is UTC in RFC 3339 with nanoseconds.
type Entry struct {
	Format  string       `json:"format,omitempty"`
	Wall    string       `json:"wall"`
	Event   Event        `json:"event"`
	Row     matrix.RowID `json:"row,omitempty"`
	Attempt int          `json:"attempt,omitempty"`
	Outcome string       `json:"outcome,omitempty"`
	Detail  string       `json:"detail,omitempty"`
	// Files are those of an attempt that ended, by their names in its folder, sorted: a run that is cut later cannot name them in a manifest any more.
	Files []FileEntry `json:"files,omitempty"`
}

// MaxDetail is the longest detail of a log entry, in bytes; longer ones are cut.
const MaxDetail = 1024

// PlanDigest is the digest of a plan: the sha256 of its canonical JSON with an empty Digest.
func PlanDigest(p matrix.Plan) (string, error) {
	p.Digest = ""
	return canonical.Digest(p)
}

// RowsDigest is the digest of the set of a plan's row ids: the sha256 of the canonical JSON of their sorted list.
func RowsDigest(p matrix.Plan) (string, error) {
	ids := make([]string, 0, len(p.Rows))
	for _, r := range p.Rows {
		ids = append(ids, string(r.ID))
	}
	sort.Strings(ids)
	return canonical.Digest(ids)
}

// RowVerdict joins the verdicts of all attempts at one row, in order. Several attempts with different outcomes are flaky, which is not
// pass; no attempt is not_run. Findings of all attempts are kept.
func RowVerdict(row matrix.RowID, attempts []evidence.Verdict) evidence.Verdict {
	if len(attempts) == 0 {
		return evidence.Verdict{Row: row}
	}
	joined := attempts[len(attempts)-1]
	if len(attempts) == 1 {
		return joined
	}
	joined.Findings = nil
	for _, a := range attempts {
		joined.Findings = append(joined.Findings, a.Findings...)
		if a.Outcome != joined.Outcome {
			joined.Outcome = evidence.Flaky
		}
	}
	return joined
}

func hexSum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
