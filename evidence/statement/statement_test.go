package statement_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/evidence/statement"
	"github.com/engine-acceptance/acceptance/matrix/canonical"
)

func claims() statement.Claims {
	return statement.Claims{Manifest: strings.Repeat("a", 64), PlanFile: strings.Repeat("b", 64), Plan: "p", Matrix: "m", EngineFile: "e", Rows: "r",
		HarnessCommit: "c", SubjectCommit: "s", Engine: "cdp", Product: "chromium", Environment: "x11"}
}

func keys(t *testing.T) (ed25519.PrivateKey, ed25519.PublicKey) {
	t.Helper()
	private, public, err := statement.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	key, err := statement.ParsePrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	pub, err := statement.ParsePublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return key, pub
}

func TestSignOpenMatch(t *testing.T) {
	g := gomega.NewWithT(t)
	key, pub := keys(t)
	env, err := statement.Sign(statement.New(claims()), key)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	s, err := statement.Open(env, pub)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(statement.Match(s, claims())).To(gomega.Succeed())
	_, id, err := statement.Read(env)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(id).To(gomega.Equal(statement.KeyID(pub)))
}

// K58: the signature is good, the signer is right, and the statement is about something else.
func TestGoodSignatureOverSomethingElse(t *testing.T) {
	key, pub := keys(t)
	other, _ := keys(t)
	payload := func(edit func(*statement.Statement)) []byte {
		s := statement.New(claims())
		edit(&s)
		b, err := canonical.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	same := func(*statement.Statement) {}
	for name, c := range map[string]struct {
		claim   string
		typ     string
		payload []byte
		key     ed25519.PrivateKey
	}{
		"other_statement_type":  {"_type", "", payload(func(s *statement.Statement) { s.Type = "https://in-toto.io/Statement/v0.1" }), key},
		"other_predicate_type":  {"predicateType", "", payload(func(s *statement.Statement) { s.PredicateType = "https://slsa.dev/provenance/v1" }), key},
		"other_predicate":       {"predicateType", "", []byte(`{"_type":"https://in-toto.io/Statement/v1","predicate":{"x":1},"predicateType":"https://slsa.dev/provenance/v1","subject":[]}`), key},
		"other_payload_type":    {"payloadType", "text/plain", payload(same), key},
		"invalid_json":          {"json", "", []byte(`{"_type":`), key},
		"not_canonical":         {"json", "", append(payload(same), ' '), key},
		"unknown_field":         {"json", "", bytes.Replace(payload(same), []byte(`"engine":`), []byte(`"a":1,"engine":`), 1), key},
		"missing_field":         {"json", "", bytes.Replace(payload(same), []byte(`"engine":"cdp",`), nil, 1), key},
		"subject_missing":       {"subject", "", payload(func(s *statement.Statement) { s.Subject = s.Subject[:1] }), key},
		"subject_other_digest":  {"subject", "", payload(func(s *statement.Statement) { s.Subject[0].Digest["sha256"] = "f" }), key},
		"subject_second_digest": {"subject", "", payload(func(s *statement.Statement) { s.Subject[0].Digest["sha1"] = "f" }), key},
		"other_signer":          {"signer", "", payload(same), other},
	} {
		t.Run(name, func(t *testing.T) {
			typ := c.typ
			if typ == "" {
				typ = statement.PayloadType
			}
			env, err := statement.Seal(typ, c.payload, c.key)
			if err != nil {
				t.Fatal(err)
			}
			_, err = statement.Open(env, pub)
			var claim *statement.ClaimError
			if !errors.As(err, &claim) || claim.Claim != c.claim {
				t.Fatalf("got %v, want claim %s named", err, c.claim)
			}
		})
	}
}

func TestMatchNamesEveryClaim(t *testing.T) {
	raw, _ := json.Marshal(claims())
	var fields map[string]any
	if err := json.Unmarshal(raw, &fields); err != nil {
		t.Fatal(err)
	}
	for name := range fields {
		changed := map[string]any{}
		for k, v := range fields {
			changed[k] = v
		}
		if name == "harness_dirty" {
			changed[name] = true
		} else {
			changed[name] = "other"
		}
		raw, _ := json.Marshal(changed)
		var c statement.Claims
		if err := json.Unmarshal(raw, &c); err != nil {
			t.Fatal(err)
		}
		var claim *statement.ClaimError
		if err := statement.Match(statement.New(c), claims()); !errors.As(err, &claim) || claim.Claim != name {
			t.Errorf("%s changed: got %v", name, err)
		}
	}
}

func TestEveryByteOfTheEnvelopeCounts(t *testing.T) {
	key, pub := keys(t)
	env, err := statement.Sign(statement.New(claims()), key)
	if err != nil {
		t.Fatal(err)
	}
	for i := range env {
		bad := bytes.Clone(env)
		bad[i] ^= 1
		if _, err := statement.Open(bad, pub); err == nil {
			t.Fatalf("byte %d (%q) changed: accepted", i, env[i])
		}
		// Without a key from elsewhere, too: the envelope carries one.
		if _, _, err := statement.Read(bad); err == nil {
			t.Fatalf("byte %d (%q) changed: read without a key", i, env[i])
		}
	}
}

// Payloads of our own types travel in the same envelope, and no type is taken for another.
func TestUnseal(t *testing.T) {
	g := gomega.NewWithT(t)
	key, pub := keys(t)
	_, other := keys(t)
	const kind = "application/vnd.example+json"
	env, err := statement.Seal(kind, []byte(`{"a":1}`), key)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(statement.IsEnvelope(env)).To(gomega.BeTrue())
	g.Expect(statement.IsEnvelope([]byte(`{"a":1}`))).To(gomega.BeFalse())
	for _, trusted := range []ed25519.PublicKey{pub, nil} {
		payload, id, err := statement.Unseal(env, kind, trusted)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(string(payload)).To(gomega.Equal(`{"a":1}`))
		g.Expect(id).To(gomega.Equal(statement.KeyID(pub)))
	}
	var claim *statement.ClaimError
	_, _, err = statement.Unseal(env, statement.PayloadType, pub)
	g.Expect(errors.As(err, &claim) && claim.Claim == "payloadType").To(gomega.BeTrue(), "%v", err)
	_, _, err = statement.Unseal(env, kind, other)
	g.Expect(errors.As(err, &claim) && claim.Claim == "signer").To(gomega.BeTrue(), "%v", err)
	// A key that is put into an envelope beside another's signature does not make it whole.
	var e statement.Envelope
	g.Expect(json.Unmarshal(env, &e)).To(gomega.Succeed())
	theirs, err := statement.Seal(kind, []byte(`{"a":2}`), func() ed25519.PrivateKey { k, _ := keys(t); return k }())
	g.Expect(err).NotTo(gomega.HaveOccurred())
	var o statement.Envelope
	g.Expect(json.Unmarshal(theirs, &o)).To(gomega.Succeed())
	e.Signatures[0].PublicKey = o.Signatures[0].PublicKey
	mixed, err := canonical.Marshal(e)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	_, _, err = statement.Unseal(append(mixed, '\n'), kind, nil)
	g.Expect(errors.As(err, &claim) && claim.Claim == "signer").To(gomega.BeTrue(), "%v", err)
}

func TestKeyFiles(t *testing.T) {
	private, public, err := statement.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	for name, raw := range map[string][]byte{"empty": nil, "public": public, "twice": append(bytes.Clone(private), private...), "text": []byte("secret")} {
		_, err := statement.ParsePrivateKey(raw)
		if err == nil {
			t.Errorf("%s: accepted as a private key", name)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error holds bytes of the file: %v", name, err)
		}
	}
	if _, err := statement.ParsePublicKey(private); err == nil {
		t.Error("a private key was accepted as a public one")
	}
}

func FuzzOpen(f *testing.F) {
	seed := bytes.Repeat([]byte{7}, ed25519.SeedSize)
	key := ed25519.NewKeyFromSeed(seed)
	pub := key.Public().(ed25519.PublicKey)
	good, err := statement.Sign(statement.New(claims()), key)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"payload":"` + base64.StdEncoding.EncodeToString([]byte("{}")) + `","payloadType":"application/vnd.in-toto+json","signatures":[{"keyid":"","sig":""}]}` + "\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if _, err := statement.Open(raw, pub); err == nil && !bytes.Equal(raw, good) {
			t.Fatalf("accepted an envelope that was never signed: %q", raw)
		}
	})
}
