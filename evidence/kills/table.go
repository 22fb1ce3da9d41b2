package kills

import (
	"bytes"
	"cmp"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/evidence/statement"
	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/matrix/canonical"
)

// Format names the format and version of a [Table]. Version 1 said whether a mutant was killed and not which rows found it, and had no
// healthy engine beside it.
const Format = "acceptance.kills/v2"

// PayloadType is the DSSE payload type of a signed table.
const PayloadType = "application/vnd.engine-acceptance.kills+json"

// MaxSize is the largest file that is read, in bytes.
const MaxSize = 64 << 20

// Pair is one thing that a mutant must be found out by, or was.
type Pair struct {
	Requirement matrix.RequirementID `json:"requirement"`
	Reason      evidence.Reason      `json:"reason"`
}

// String reads requirement and reason.
func (p Pair) String() string { return string(p.Requirement) + " " + string(p.Reason) }

// Row is one row that was carried out.
type Row struct {
	Row     matrix.RowID     `json:"row"`
	Outcome evidence.Outcome `json:"outcome"`
	// Found are the pairs that its findings name, sorted, each once; empty for a row that passed.
	Found []Pair `json:"found"`
	// Own is false for a row that the mutant does not name and that ran because every row did.
	Own bool `json:"own"`
}

// Mutant is one engine that is wrong on purpose, and what its rows saw.
type Mutant struct {
	Name string `json:"name"`
	Seam string `json:"seam"`
	Text string `json:"text"`
	// Coward: polite and useless. Declared is then what its decision must rest on at the least, else the exact set of its own rows.
	Coward   bool   `json:"coward"`
	Declared []Pair `json:"declared"`
	// Decision over its rows, in the word of [evidence.Decision].
	Decision string `json:"decision"`
	Rows     []Row  `json:"rows"`
	// Manifest is the sha256 of its bundle's manifest, empty when the run did not finish.
	Manifest string `json:"manifest_sha256"`
	// Error says why it could not be run.
	Error string `json:"error,omitempty"`
}

// Table is what a run of mutants leaves behind. Lists of rows and pairs are sorted; mutants are in the program's order.
type Table struct {
	Format string `json:"format"`
	// Harness is the sha256 of the program that judged, Commit its source, Matrix the digest of the data files.
	Harness string `json:"harness_sha256"`
	Commit  string `json:"harness_commit"`
	Matrix  string `json:"matrix_sha256"`
	// Engine, Product and Environment name what the mutants were made from, and where they ran.
	Engine      string `json:"engine"`
	Product     string `json:"product"`
	Environment string `json:"environment"`
	// Cross is true when every mutant ran against every row of the plan.
	Cross bool `json:"cross"`
	// Known names every mutant that the program has: those that were not run make the table incomplete.
	Known []string `json:"known"`
	// Healthy are the rows of the engine without a defect, run by the same command; HealthyManifest is the sha256 of its bundle's manifest.
	Healthy         []Row    `json:"healthy"`
	HealthyManifest string   `json:"healthy_manifest_sha256"`
	Mutants         []Mutant `json:"mutants"`
	// Digest is the sha256 of the canonical table without this field.
	Digest string `json:"digest"`
}

// Seen makes a [Row] of a verdict.
func Seen(v evidence.Verdict, own bool) Row {
	r := Row{Row: v.Row, Outcome: v.Outcome, Found: []Pair{}, Own: own}
	for _, f := range v.Findings {
		if p := (Pair{f.Requirement, f.Reason}); !slices.Contains(r.Found, p) {
			r.Found = append(r.Found, p)
		}
	}
	slices.SortFunc(r.Found, comparePairs)
	return r
}

func comparePairs(a, b Pair) int {
	return cmp.Or(cmp.Compare(a.Requirement, b.Requirement), cmp.Compare(a.Reason, b.Reason))
}

// digest is the digest of everything but the digest.
func (t Table) digest() (string, error) {
	t.Digest = ""
	return canonical.Digest(t)
}

// Marshal returns the table as one line of canonical JSON with its digest.
func (t Table) Marshal() ([]byte, error) {
	t.Format = Format
	var err error
	if t.Digest, err = t.digest(); err != nil {
		return nil, fmt.Errorf("write the kill table: %w", err)
	}
	raw, err := canonical.Marshal(t)
	if err != nil {
		return nil, fmt.Errorf("write the kill table: %w", err)
	}
	return append(raw, '\n'), nil
}

// Seal returns the table inside a DSSE envelope that the key signs.
func (t Table) Seal(key ed25519.PrivateKey) ([]byte, error) {
	raw, err := t.Marshal()
	if err != nil {
		return nil, err
	}
	return statement.Seal(PayloadType, bytes.TrimSuffix(raw, []byte("\n")), key)
}

// ErrTable is what errors.Is finds in every error of [Read]: the bytes are no table, or were altered.
var ErrTable = errors.New("no kill table")

// Read reads a table as [Table.Marshal] or [Table.Seal] wrote it. Every byte counts: the canonical form of the known fields, the format, the
// digest. signer is the id of the key that the envelope names, empty for a table without one; checked is true when pub made its signature. A
// signature that pub did not make is an error; without pub it is not checked against anybody.
func Read(raw []byte, pub ed25519.PublicKey) (t Table, signer string, checked bool, err error) {
	if len(raw) > MaxSize {
		return Table{}, "", false, fmt.Errorf("%w: more than %d bytes", ErrTable, MaxSize)
	}
	body, whole := bytes.CutSuffix(raw, []byte("\n"))
	if !whole {
		return Table{}, "", false, fmt.Errorf("%w: it does not end with a newline: cut", ErrTable)
	}
	if statement.IsEnvelope(raw) {
		body, signer, err = statement.Unseal(raw, PayloadType, pub)
		if err != nil {
			return Table{}, "", false, fmt.Errorf("%w: %w", ErrTable, err)
		}
		checked = pub != nil
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&t); err != nil {
		return Table{}, "", false, fmt.Errorf("%w: %w", ErrTable, err)
	}
	if t.Format != Format {
		return Table{}, "", false, fmt.Errorf("%w: format %.80q, want %s", ErrTable, t.Format, Format)
	}
	again, err := canonical.Marshal(t)
	if err != nil || !bytes.Equal(again, body) {
		return Table{}, "", false, fmt.Errorf("%w: not the canonical JSON of its known fields", ErrTable)
	}
	digest, err := t.digest()
	if err != nil || digest != t.Digest {
		return Table{}, "", false, fmt.Errorf("%w: altered: its digest says %.64q, its content has %s", ErrTable, t.Digest, digest)
	}
	return t, signer, checked, nil
}
