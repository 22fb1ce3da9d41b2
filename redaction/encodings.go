package redaction

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
)

// EncodingsVersion names the closed list of encodings that rules and scanner know. It changes with the list, and goes into the
// evidence beside every scan result.
const EncodingsVersion = "acceptance-encodings/1"

// EncodingName is one member of the closed list of encodings.
type EncodingName string

// The encodings of version 1. A base64 name ends in the number of foreign bytes (modulo 3) that stand before the value;
// its pattern holds only characters that the value alone determines, so padded and unpadded text both contain it.
const (
	Plain           EncodingName = "plain"
	Upper           EncodingName = "upper"
	Lower           EncodingName = "lower"
	SwapCase        EncodingName = "swap-case"
	Base64Std0      EncodingName = "base64-std-0"
	Base64Std1      EncodingName = "base64-std-1"
	Base64Std2      EncodingName = "base64-std-2"
	Base64URL0      EncodingName = "base64-url-0"
	Base64URL1      EncodingName = "base64-url-1"
	Base64URL2      EncodingName = "base64-url-2"
	Query           EncodingName = "url-query"
	QueryLower      EncodingName = "url-query-lower"
	Path            EncodingName = "url-path"
	PathLower       EncodingName = "url-path-lower"
	PercentUpper    EncodingName = "percent-all-upper"
	PercentLower    EncodingName = "percent-all-lower"
	HTML            EncodingName = "html"
	HTMLDec         EncodingName = "html-dec"
	HTMLHexLower    EncodingName = "html-hex-lower"
	HTMLHexUpper    EncodingName = "html-hex-upper"
	JSON            EncodingName = "json"
	JSONULower      EncodingName = "json-u-lower"
	JSONUUpper      EncodingName = "json-u-upper"
	UTF16LE         EncodingName = "utf16-le"
	UTF16BE         EncodingName = "utf16-be"
	HexLower        EncodingName = "hex-lower"
	HexUpper        EncodingName = "hex-upper"
	QuotedPrintable EncodingName = "quoted-printable"
	// Split is the value, in any of the other forms, with white space, NUL bytes, quoted-printable soft breaks or escaped line
	// ends between its bytes. It has no pattern of its own: the [Scanner] finds it by a second pass over squeezed text. The
	// [Rules] do not know it.
	Split EncodingName = "split"
)

// EncodingNames returns the closed list in its fixed order.
func EncodingNames() []EncodingName {
	return []EncodingName{Plain, Upper, Lower, SwapCase, Base64Std0, Base64Std1, Base64Std2, Base64URL0, Base64URL1,
		Base64URL2, Query, QueryLower, Path, PathLower, PercentUpper, PercentLower, HTML, HTMLDec, HTMLHexLower,
		HTMLHexUpper, JSON, JSONULower, JSONUUpper, UTF16LE, UTF16BE, HexLower, HexUpper, QuotedPrintable, Split}
}

// Encodings returns the value in each encoding of the list that has a pattern of its own (all but [Split]). Different names may hold equal bytes:
// a value of letters and digits is the same in plain text, a URL and JSON. Forms that would come out empty are left out.
func Encodings(value string) map[EncodingName][]byte {
	m := make(map[EncodingName][]byte, 28)
	put := func(n EncodingName, s string) {
		if s != "" {
			m[n] = []byte(s)
		}
	}
	put(Plain, value)
	put(Upper, strings.ToUpper(value))
	put(Lower, strings.ToLower(value))
	put(SwapCase, strings.Map(swapCase, value))
	for i, n := range []EncodingName{Base64Std0, Base64Std1, Base64Std2} {
		put(n, base64Core(base64.RawStdEncoding, value, i))
	}
	for i, n := range []EncodingName{Base64URL0, Base64URL1, Base64URL2} {
		put(n, base64Core(base64.RawURLEncoding, value, i))
	}
	put(Query, url.QueryEscape(value))
	put(QueryLower, lowerPercent(url.QueryEscape(value)))
	put(Path, url.PathEscape(value))
	put(PathLower, lowerPercent(url.PathEscape(value)))
	put(PercentUpper, each([]byte(value), "%%%02X"))
	put(PercentLower, each([]byte(value), "%%%02x"))
	put(HTML, html.EscapeString(value))
	put(HTMLDec, each([]rune(value), "&#%d;"))
	put(HTMLHexLower, each([]rune(value), "&#x%x;"))
	put(HTMLHexUpper, each([]rune(value), "&#x%X;"))
	if b, err := json.Marshal(value); err == nil {
		put(JSON, string(b[1:len(b)-1]))
	}
	units := utf16.Encode([]rune(value))
	put(JSONULower, each(units, `\u%04x`))
	put(JSONUUpper, each(units, `\u%04X`))
	var le, be []byte
	for _, u := range units {
		le = append(le, byte(u), byte(u>>8))
		be = append(be, byte(u>>8), byte(u))
	}
	put(UTF16LE, string(le))
	put(UTF16BE, string(be))
	put(HexLower, hex.EncodeToString([]byte(value)))
	put(HexUpper, strings.ToUpper(hex.EncodeToString([]byte(value))))
	put(QuotedPrintable, quotedPrintable(value))
	return m
}

func swapCase(r rune) rune {
	if unicode.IsUpper(r) {
		return unicode.ToLower(r)
	}
	return unicode.ToUpper(r)
}

func each[T byte | rune | uint16](in []T, format string) string {
	var b strings.Builder
	for _, x := range in {
		fmt.Fprintf(&b, format, x)
	}
	return b.String()
}

// base64Core encodes value after lead foreign bytes and keeps the characters whose six bits all belong to value.
func base64Core(enc *base64.Encoding, value string, lead int) string {
	s := enc.EncodeToString(append(make([]byte, lead), value...))
	from := (lead*8 + 5) / 6
	to := (lead + len(value)) * 8 / 6
	if from >= to {
		return ""
	}
	return s[from:to]
}

// lowerPercent lowers the hex digits of percent escapes and nothing else.
func lowerPercent(s string) string {
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:i+3], bytes.ToLower(b[i+1:i+3]))
			i += 2
		}
	}
	return string(b)
}

// quotedPrintable escapes as RFC 2045 does, without soft breaks: those are found by the squeezed pass.
func quotedPrintable(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if c == '=' || c < ' ' || c > '~' {
			fmt.Fprintf(&b, "=%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// form is one distinct byte pattern of a value, with the first name of the list that produces it.
type form struct {
	name EncodingName
	lit  []byte
}

// minForm is the shortest pattern in bytes that is searched for: below it, chance hits in ordinary text stop being rare.
const minForm = 6

// distinctForms returns the patterns of value in list order, equal bytes once.
func distinctForms(value string) []form {
	m := Encodings(value)
	var out []form
	for _, n := range EncodingNames() {
		lit, ok := m[n]
		if !ok || len(lit) < minForm || slices.ContainsFunc(out, func(f form) bool { return bytes.Equal(f.lit, lit) }) {
			continue
		}
		out = append(out, form{n, lit})
	}
	return out
}
