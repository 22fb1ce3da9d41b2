// Package waiver is the signed consent to a loss: a small file in which an owner says, before a day and for a reason, that a build may lack or loosen
// exactly the named things that one baseline bundle had (J13). It is canonical JSON in a DSSE envelope with one Ed25519 signature; schema.json is the
// published schema of the document inside.
//
//	w, err := waiver.Parse("waiver.yaml", raw)   // as people write it
//	envelope, err := w.Seal(key)
//	w, signer, checked, err := waiver.Open(envelope, pub)
package waiver

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/engine-acceptance/acceptance/evidence/statement"
	"github.com/engine-acceptance/acceptance/matrix/canonical"
	"github.com/engine-acceptance/acceptance/matrix/strict"
)

// Format names the format and version of a [Waiver].
const Format = "acceptance.waiver/v1"

// PayloadType is the DSSE payload type of a waiver.
const PayloadType = "application/vnd.engine-acceptance.waiver+json"

// MaxSize is the largest file that is read, in bytes.
const MaxSize = 1 << 20

// Kinds is the closed list of what can be lost.
var Kinds = []string{"row", "requirement", "capability", "feature", "budget", "core", "exception", "expectation", "guard", "mutant"}

// Loss is one thing that may be lost or loosened, in the very words that gate prints for it.
type Loss struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	How  string `json:"how"`
}

// String reads kind, name and how.
func (l Loss) String() string { return fmt.Sprintf("%s %s: %s", l.Kind, l.Name, l.How) }

// Waiver is the document. Losses are sorted by nothing: they stand as the owner wrote them.
type Waiver struct {
	Format string `json:"format"`
	// Baseline is the sha256 of the manifest of the bundle that had what is lost, in lower-case hex.
	Baseline string `json:"baseline_manifest_sha256"`
	Owner    string `json:"owner"`
	Reason   string `json:"reason"`
	// Expires is the last day on which the waiver holds, UTC, as in 2027-01-31.
	Expires string `json:"expires"`
	Losses  []Loss `json:"losses"`
}

// Until is the instant at which the waiver no longer holds: the end of its last day.
func (w Waiver) Until() time.Time {
	day, err := time.Parse(time.DateOnly, w.Expires)
	if err != nil {
		return time.Time{}
	}
	return day.Add(24 * time.Hour)
}

// Parse reads a waiver as people write it, in YAML: every problem at once, with line and field.
func Parse(name string, raw []byte) (Waiver, error) {
	var problems strict.Problems
	w := Waiver{Format: Format}
	if top, ok := strict.Read(name, raw, &problems); ok {
		o := top.Object("format", "baseline", "owner", "reason", "expires", "losses")
		o.Need("format").Enum(Format)
		if n := o.Need("baseline"); n.Exists() {
			if w.Baseline = n.Text(); !digestForm(w.Baseline) {
				n.Bad("want the sha256 of the baseline's manifest in lower-case hex, as gate prints it")
			}
		}
		w.Owner, w.Reason = o.Need("owner").Text(), o.Need("reason").Text()
		if n := o.Need("expires"); n.Exists() {
			w.Expires = n.Text()
			if w.Until().IsZero() {
				n.Bad("want a day in quotes such as \"2027-01-31\"")
			}
		}
		list := o.Need("losses")
		for _, n := range list.List() {
			f := n.Object("kind", "name", "how")
			l := Loss{f.Need("kind").Enum(Kinds...), f.Need("name").Text(), f.Need("how").Text()}
			for _, other := range w.Losses {
				if other == l {
					n.Bad("occurs twice")
				}
			}
			w.Losses = append(w.Losses, l)
		}
		if list.IsList() && len(w.Losses) == 0 {
			list.Bad("waives nothing")
		}
	}
	if err := problems.Err(); err != nil {
		return Waiver{}, err
	}
	return w, nil
}

func digestForm(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == 32 && hex.EncodeToString(b) == s
}

// Seal signs the waiver.
func (w Waiver) Seal(key ed25519.PrivateKey) ([]byte, error) {
	if err := w.check(); err != nil {
		return nil, fmt.Errorf("sign the waiver: %w", err)
	}
	raw, err := canonical.Marshal(w)
	if err != nil {
		return nil, fmt.Errorf("sign the waiver: %w", err)
	}
	return statement.Seal(PayloadType, raw, key)
}

// check holds the form of a document that came from elsewhere.
func (w Waiver) check() error {
	switch {
	case w.Format != Format:
		return fmt.Errorf("format %.80q, want %s", w.Format, Format)
	case !digestForm(w.Baseline):
		return errors.New("its baseline is no sha256 of a manifest")
	case w.Owner == "" || w.Reason == "":
		return errors.New("owner and reason are needed")
	case w.Until().IsZero():
		return fmt.Errorf("expires %.40q, want a day such as 2027-01-31", w.Expires)
	case len(w.Losses) == 0:
		return errors.New("it waives nothing")
	}
	return nil
}

// ErrUnsigned is returned by [Open] for a document without an envelope: nobody stands for it.
var ErrUnsigned = errors.New("the waiver is not signed")

// Open reads a signed waiver. signer is the id of the key that its envelope names; checked is true when pub made the signature. A signature that pub
// did not make is an error.
func Open(envelope []byte, pub ed25519.PublicKey) (w Waiver, signer string, checked bool, err error) {
	if len(envelope) > MaxSize {
		return Waiver{}, "", false, fmt.Errorf("read the waiver: more than %d bytes", MaxSize)
	}
	if !statement.IsEnvelope(envelope) {
		return Waiver{}, "", false, fmt.Errorf("read the waiver: %w: sign it with acceptance waive", ErrUnsigned)
	}
	payload, signer, err := statement.Unseal(envelope, PayloadType, pub)
	if err != nil {
		return Waiver{}, "", false, fmt.Errorf("read the waiver: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(payload))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&w); err != nil {
		return Waiver{}, "", false, fmt.Errorf("read the waiver: %w", err)
	}
	again, err := canonical.Marshal(w)
	if err != nil || !bytes.Equal(again, payload) {
		return Waiver{}, "", false, errors.New("read the waiver: not the canonical JSON of its known fields")
	}
	if err := w.check(); err != nil {
		return Waiver{}, "", false, fmt.Errorf("read the waiver: %w", err)
	}
	return w, signer, pub != nil, nil
}
