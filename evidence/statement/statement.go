// Package statement signs what a bundle is and checks who vouches for it: an in-toto statement, version 1, inside a DSSE envelope with one
// Ed25519 signature. Only the standard library's cryptography is used.
//
// A signature says who vouches and that nothing changed since. It does not say that the run happened.
//
//	env, err := statement.Sign(statement.New(claims), key)
//	st, err := statement.Open(env, pub)         // signer, payload type, JSON form, statement type, predicate type
//	err = statement.Match(st, claims)           // every claim against what was recomputed from the bundle's bytes
//
// Open and Match compare everything that they read: a good signature over another type, another set of rows or other digests is an error
// that names the claim.
package statement

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"strconv"

	"github.com/engine-acceptance/acceptance/matrix/canonical"
)

// The fixed words of the envelope and the statement.
const (
	// PayloadType is the DSSE payload type of an in-toto statement.
	PayloadType = "application/vnd.in-toto+json"
	// Type is the type of an in-toto statement, version 1.
	Type = "https://in-toto.io/Statement/v1"
	// PredicateType names our predicate, [Claims], and its version.
	PredicateType = "https://github.com/engine-acceptance/acceptance/evidence/bundle/v1"
	// SubjectManifest and SubjectPlan are the names of the two subjects.
	SubjectManifest = "manifest.json"
	SubjectPlan     = "plan.json"
)

// MaxEnvelope is the largest envelope that is read, in bytes.
const MaxEnvelope = 64 << 10

// Claims is the predicate: what the signer vouches for. All digests are sha256 in lower-case hex.
type Claims struct {
	// Manifest is the digest of the bytes of manifest.json, PlanFile that of plan.json.
	Manifest string `json:"manifest_sha256"`
	PlanFile string `json:"plan_file_sha256"`
	// Plan is the plan's own digest, Matrix that of the data files it was made from, EngineFile that of the support contract.
	Plan       string `json:"plan_digest"`
	Matrix     string `json:"matrix_sha256"`
	EngineFile string `json:"engine_file_sha256"`
	// Rows is the digest of the canonical list of row ids.
	Rows string `json:"rows_sha256"`
	// HarnessCommit and HarnessDirty are those of provenance.json, SubjectCommit that of the engine.
	HarnessCommit string `json:"harness_commit"`
	HarnessDirty  bool   `json:"harness_dirty"`
	SubjectCommit string `json:"subject_commit"`
	Engine        string `json:"engine"`
	Product       string `json:"product"`
	Environment   string `json:"environment"`
}

// Statement is an in-toto statement, version 1, with our predicate.
type Statement struct {
	Type          string    `json:"_type"`
	Subject       []Subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     Claims    `json:"predicate"`
}

// Subject is one file that the statement is about.
type Subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

// Envelope is a DSSE envelope. Payload and Sig are standard base64.
type Envelope struct {
	PayloadType string      `json:"payloadType"`
	Payload     string      `json:"payload"`
	Signatures  []Signature `json:"signatures"`
}

// Signature is one signature of a DSSE envelope. KeyID is [KeyID] of the signer.
type Signature struct {
	KeyID string `json:"keyid"`
	Sig   string `json:"sig"`
	// PublicKey is the signer's key in PKIX form, standard base64. It makes every byte of the signature checkable without a key from elsewhere;
	// that the key is the right one's, only a key from elsewhere can say.
	PublicKey string `json:"public_key"`
}

// ClaimError names the first thing of a statement that is not as it must be. Claim is a JSON field name of the envelope, the statement or
// the predicate; "signature", "signer" or "json" for the envelope as a whole.
type ClaimError struct {
	Claim, Want, Got string
}

// Error reads claim, got and want.
func (e *ClaimError) Error() string {
	return fmt.Sprintf("statement: %s is %.200q, want %.200q", e.Claim, e.Got, e.Want)
}

// New returns the statement for claims.
func New(c Claims) Statement {
	return Statement{Type: Type, PredicateType: PredicateType, Predicate: c, Subject: []Subject{
		{Name: SubjectManifest, Digest: map[string]string{"sha256": c.Manifest}},
		{Name: SubjectPlan, Digest: map[string]string{"sha256": c.PlanFile}},
	}}
}

// Sign returns the envelope as one line of canonical JSON with a newline.
func Sign(s Statement, key ed25519.PrivateKey) ([]byte, error) {
	if len(key) != ed25519.PrivateKeySize {
		return nil, errors.New("sign statement: no Ed25519 private key")
	}
	payload, err := canonical.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("sign statement: %w", err)
	}
	return Seal(PayloadType, payload, key)
}

// Seal signs any payload. [Sign] is what a run uses; Seal lets a test or another tool make envelopes that [Open] must refuse.
func Seal(payloadType string, payload []byte, key ed25519.PrivateKey) ([]byte, error) {
	pub, ok := key.Public().(ed25519.PublicKey)
	if !ok {
		return nil, errors.New("sign statement: no Ed25519 private key")
	}
	b64 := base64.StdEncoding
	der, err := x509.MarshalPKIXPublicKey(pub)
	if err != nil {
		return nil, fmt.Errorf("sign statement: %w", err)
	}
	line, err := canonical.Marshal(Envelope{PayloadType: payloadType, Payload: b64.EncodeToString(payload), Signatures: []Signature{
		{KeyID: KeyID(pub), Sig: b64.EncodeToString(ed25519.Sign(key, pae(payloadType, payload))), PublicKey: b64.EncodeToString(der)},
	}})
	if err != nil {
		return nil, fmt.Errorf("sign statement: %w", err)
	}
	return append(line, '\n'), nil
}

// pae is the pre-authentication encoding of DSSE, version 1.
func pae(payloadType string, payload []byte) []byte {
	b := []byte("DSSEv1 " + strconv.Itoa(len(payloadType)) + " " + payloadType + " " + strconv.Itoa(len(payload)) + " ")
	return append(b, payload...)
}

// Read returns the statement and the id of the key that its envelope names. It is for bundles whose signer's key is not at hand: everything
// that [Open] checks is checked, but the signature only against the key that the envelope itself carries. A key id and a key that come with the
// envelope prove nothing about who signed.
func Read(envelope []byte) (Statement, string, error) {
	s, e, err := read(envelope)
	if err != nil {
		return Statement{}, "", err
	}
	return s, e.Signatures[0].KeyID, nil
}

// IsEnvelope reports whether bytes look like a DSSE envelope rather than a bare document.
func IsEnvelope(raw []byte) bool {
	var e struct {
		PayloadType string `json:"payloadType"`
	}
	return json.Unmarshal(raw, &e) == nil && e.PayloadType != ""
}

// Unseal checks the form of an envelope over a payload of our own type, and its signature with pub; without pub only against the key that the
// envelope carries. It returns the payload and the id of the key that the envelope names. The caller bounds the envelope's size. Errors are
// [*ClaimError].
func Unseal(envelope []byte, payloadType string, pub ed25519.PublicKey) (payload []byte, keyID string, err error) {
	e, payload, err := openAs(envelope, payloadType)
	if err != nil {
		return nil, "", err
	}
	if pub != nil {
		if err := e.signedBy(pub, payload); err != nil {
			return nil, "", err
		}
	}
	return payload, e.Signatures[0].KeyID, nil
}

// signedBy checks that pub is the key that the envelope names, and made its signature.
func (e Envelope) signedBy(pub ed25519.PublicKey, payload []byte) error {
	if got, want := e.Signatures[0].KeyID, KeyID(pub); got != want {
		return &ClaimError{"signer", want, got}
	}
	sig, err := base64.StdEncoding.Strict().DecodeString(e.Signatures[0].Sig)
	if err != nil || !ed25519.Verify(pub, pae(e.PayloadType, payload), sig) {
		return &ClaimError{"signature", "valid for signer " + KeyID(pub), "invalid"}
	}
	return nil
}

// wellSigned checks what of a signature can be checked without a key from elsewhere: that the key which the envelope carries has the id that it
// names, and made the signature.
func (e Envelope) wellSigned(payload []byte) error {
	s := e.Signatures[0]
	if id, err := hex.DecodeString(s.KeyID); err != nil || len(id) != sha256.Size {
		return &ClaimError{"keyid", "a sha256 in hex", s.KeyID}
	}
	if sig, err := base64.StdEncoding.Strict().DecodeString(s.Sig); err != nil || len(sig) != ed25519.SignatureSize {
		return &ClaimError{"signature", fmt.Sprintf("%d bytes in standard base64", ed25519.SignatureSize), "another form"}
	}
	der, err := base64.StdEncoding.Strict().DecodeString(s.PublicKey)
	if err != nil {
		return &ClaimError{"public_key", "standard base64", "another form"}
	}
	any, err := x509.ParsePKIXPublicKey(der)
	pub, ok := any.(ed25519.PublicKey)
	if err != nil || !ok {
		return &ClaimError{"public_key", "an Ed25519 key in PKIX form", "another form"}
	}
	return e.signedBy(pub, payload)
}

// Open checks the envelope's form, its signer and signature, the statement's type and its predicate type. Errors are [*ClaimError].
func Open(envelope []byte, pub ed25519.PublicKey) (Statement, error) {
	if len(pub) != ed25519.PublicKeySize {
		return Statement{}, errors.New("open statement: no Ed25519 public key")
	}
	e, payload, err := open(envelope)
	if err != nil {
		return Statement{}, err
	}
	if err := e.signedBy(pub, payload); err != nil {
		return Statement{}, err
	}
	s, _, err := read(envelope)
	return s, err
}

func open(envelope []byte) (Envelope, []byte, error) {
	if len(envelope) > MaxEnvelope {
		return Envelope{}, nil, &ClaimError{"json", fmt.Sprintf("at most %d bytes", MaxEnvelope), fmt.Sprintf("%d bytes", len(envelope))}
	}
	return openAs(envelope, PayloadType)
}

// openAs checks the form of an envelope, and of its signature as far as that goes without a key from elsewhere.
func openAs(envelope []byte, payloadType string) (Envelope, []byte, error) {
	body, ok := bytes.CutSuffix(envelope, []byte("\n"))
	if !ok {
		return Envelope{}, nil, &ClaimError{"json", "one line with a newline", "no newline at the end"}
	}
	var e Envelope
	if err := decode(body, &e); err != nil {
		return Envelope{}, nil, err
	}
	if e.PayloadType != payloadType {
		return Envelope{}, nil, &ClaimError{"payloadType", payloadType, e.PayloadType}
	}
	if len(e.Signatures) != 1 {
		return Envelope{}, nil, &ClaimError{"signatures", "1", strconv.Itoa(len(e.Signatures))}
	}
	payload, err := base64.StdEncoding.Strict().DecodeString(e.Payload)
	if err != nil {
		return Envelope{}, nil, &ClaimError{"payload", "standard base64", err.Error()}
	}
	if err := e.wellSigned(payload); err != nil {
		return Envelope{}, nil, err
	}
	return e, payload, nil
}

func read(envelope []byte) (Statement, Envelope, error) {
	e, payload, err := open(envelope)
	if err != nil {
		return Statement{}, e, err
	}
	// The types come first: a statement of another type has other fields.
	var types struct {
		Type          string `json:"_type"`
		PredicateType string `json:"predicateType"`
	}
	if err := canonical.Check(payload); err != nil {
		return Statement{}, e, &ClaimError{"json", "a statement in canonical JSON", err.Error()}
	}
	if err := json.Unmarshal(payload, &types); err != nil {
		return Statement{}, e, &ClaimError{"json", "a statement", err.Error()}
	}
	if types.Type != Type {
		return Statement{}, e, &ClaimError{"_type", Type, types.Type}
	}
	if types.PredicateType != PredicateType {
		return Statement{}, e, &ClaimError{"predicateType", PredicateType, types.PredicateType}
	}
	var s Statement
	if err := decode(payload, &s); err != nil {
		return Statement{}, e, err
	}
	want := New(s.Predicate).Subject
	if len(s.Subject) != len(want) {
		return Statement{}, e, &ClaimError{"subject", "2 subjects", fmt.Sprintf("%d subjects", len(s.Subject))}
	}
	for i, w := range want {
		got := s.Subject[i]
		if got.Name != w.Name || len(got.Digest) != 1 || got.Digest["sha256"] != w.Digest["sha256"] {
			return Statement{}, e, &ClaimError{"subject", fmt.Sprint(w), fmt.Sprint(got)}
		}
	}
	return s, e, nil
}

// decode reads canonical JSON that has exactly the fields of v.
func decode(raw []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return &ClaimError{"json", "canonical JSON of the known fields", err.Error()}
	}
	again, err := canonical.Marshal(v)
	if err != nil {
		return &ClaimError{"json", "canonical JSON of the known fields", err.Error()}
	}
	if !bytes.Equal(again, raw) {
		return &ClaimError{"json", "canonical JSON of the known fields, each once", "other bytes"}
	}
	return nil
}

// Match compares every claim of s with want and returns all that differ, joined; each is a [*ClaimError].
func Match(s Statement, want Claims) error {
	got := s.Predicate
	var errs []error
	for _, c := range []struct{ name, want, got string }{
		{"manifest_sha256", want.Manifest, got.Manifest},
		{"plan_file_sha256", want.PlanFile, got.PlanFile},
		{"plan_digest", want.Plan, got.Plan},
		{"matrix_sha256", want.Matrix, got.Matrix},
		{"engine_file_sha256", want.EngineFile, got.EngineFile},
		{"rows_sha256", want.Rows, got.Rows},
		{"harness_commit", want.HarnessCommit, got.HarnessCommit},
		{"harness_dirty", strconv.FormatBool(want.HarnessDirty), strconv.FormatBool(got.HarnessDirty)},
		{"subject_commit", want.SubjectCommit, got.SubjectCommit},
		{"engine", want.Engine, got.Engine},
		{"product", want.Product, got.Product},
		{"environment", want.Environment, got.Environment},
	} {
		if c.want != c.got {
			errs = append(errs, &ClaimError{c.name, c.want, c.got})
		}
	}
	return errors.Join(errs...)
}

// GenerateKey returns a new key pair as PEM: PKCS #8 for the private key, PKIX for the public one.
func GenerateKey() (private, public []byte, err error) {
	pub, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("generate key: %w", err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("generate key: %w", err)
	}
	pubDER, err := x509.MarshalPKIXPublicKey(pub)
	if err != nil {
		return nil, nil, fmt.Errorf("generate key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: pubDER}), nil
}

// ParsePrivateKey reads a PEM file with one PKCS #8 Ed25519 key. Errors never hold bytes of the file.
func ParsePrivateKey(raw []byte) (ed25519.PrivateKey, error) {
	block, err := onePEM(raw, "PRIVATE KEY")
	if err != nil {
		return nil, err
	}
	any, err := x509.ParsePKCS8PrivateKey(block)
	key, ok := any.(ed25519.PrivateKey)
	if err != nil || !ok {
		return nil, errors.New("private key: want one Ed25519 key in PKCS #8")
	}
	return key, nil
}

// ParsePublicKey reads a PEM file with one PKIX Ed25519 key.
func ParsePublicKey(raw []byte) (ed25519.PublicKey, error) {
	block, err := onePEM(raw, "PUBLIC KEY")
	if err != nil {
		return nil, err
	}
	any, err := x509.ParsePKIXPublicKey(block)
	key, ok := any.(ed25519.PublicKey)
	if err != nil || !ok {
		return nil, errors.New("public key: want one Ed25519 key in PKIX form")
	}
	return key, nil
}

func onePEM(raw []byte, kind string) ([]byte, error) {
	block, rest := pem.Decode(raw)
	if block == nil || block.Type != kind || len(bytes.TrimSpace(rest)) != 0 {
		return nil, fmt.Errorf("want one PEM block %q and nothing else", kind)
	}
	return block.Bytes, nil
}

// KeyID names a public key: the sha256 of its PKIX form in lower-case hex.
func KeyID(pub ed25519.PublicKey) string {
	der, err := x509.MarshalPKIXPublicKey(pub)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}
