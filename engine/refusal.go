package engine

import (
	"errors"
	"fmt"
)

// Code is one of the sixteen refusal codes.
type Code string

// The closed list of codes; refusals.yaml says which trigger gives which.
const (
	CodeRouteUnavailable      Code = "browser_route_unavailable"
	CodeRequiresSetup         Code = "browser_requires_setup"
	CodeConsentRequired       Code = "browser_consent_required"
	CodeConsentRevoked        Code = "browser_consent_revoked"
	CodeBindingAmbiguous      Code = "browser_binding_ambiguous"
	CodeBindingStale          Code = "browser_binding_stale"
	CodeWrongTarget           Code = "browser_wrong_target_refused"
	CodeTabRequired           Code = "browser_tab_required"
	CodeTabNotFound           Code = "browser_tab_not_found"
	CodeRefStale              Code = "browser_ref_stale"
	CodeEndpointOwnerMismatch Code = "browser_endpoint_owner_mismatch"
	CodeReconnectExhausted    Code = "browser_reconnect_exhausted"
	CodeInputTrustUnavailable Code = "browser_input_trust_unavailable"
	CodeInputIncomplete       Code = "browser_input_incomplete"
	CodeActionUnavailable     Code = "browser_action_unavailable"
	CodeOriginOutsideScope    Code = "browser_origin_outside_scope"
)

// Codes lists all sixteen, sorted by name of their trigger table.
var Codes = []Code{CodeRouteUnavailable, CodeRequiresSetup, CodeConsentRequired, CodeConsentRevoked, CodeBindingAmbiguous, CodeBindingStale,
	CodeWrongTarget, CodeTabRequired, CodeTabNotFound, CodeRefStale, CodeEndpointOwnerMismatch, CodeReconnectExhausted,
	CodeInputTrustUnavailable, CodeInputIncomplete, CodeActionUnavailable, CodeOriginOutsideScope}

// MaxDetailValue is the greatest length of one detail value, in bytes (refusals.yaml).
const MaxDetailValue = 64

// Refusal says that nothing was dispatched, and why, in closed terms. Inside a [Receipt] it says what was found after dispatch.
// It is an error, so that adapters and the core can return it as one.
type Refusal struct {
	Code      Code      `json:"code"`
	Operation Operation `json:"operation"`
	// Trigger is the id of the entry of refusals.yaml that was met.
	Trigger string `json:"trigger"`
	Detail  Detail `json:"detail"`
}

// Detail holds the typed fields of a refusal. Which of them a code carries is said by refusals.yaml; the others stay empty. No value
// holds a pid, path, port, URL or title, and none is longer than [MaxDetailValue] bytes.
type Detail struct {
	EngineFamily     Family   `json:"engine_family,omitempty"`
	Product          Product  `json:"product,omitempty"`
	RequiredProtocol Protocol `json:"required_protocol,omitempty"`
	Limitation       string   `json:"limitation,omitempty"`
	Reason           string   `json:"reason,omitempty"`
	NextAction       string   `json:"next_action,omitempty"`
	PersonStep       string   `json:"person_step,omitempty"`
	Field            string   `json:"field,omitempty"`
	Generation       string   `json:"generation,omitempty"`
	CandidateCount   int      `json:"candidate_count,omitempty"`
	Attempts         int      `json:"attempts,omitempty"`
	RequestedRoute   Route    `json:"requested_route,omitempty"`
	AlternativeRoute Route    `json:"alternative_route,omitempty"`
	RequestedChars   int      `json:"requested_chars,omitempty"`
	DeliveredChars   int      `json:"delivered_chars,omitempty"`
	Action           Action   `json:"action,omitempty"`
	Route            Route    `json:"route,omitempty"`
	State            State    `json:"state,omitempty"`
}

// Error reads code, operation and trigger.
func (r *Refusal) Error() string {
	return fmt.Sprintf("%s: %s (%s)", r.Operation, r.Code, r.Trigger)
}

// AsRefusal returns the refusal inside err, or nil.
func AsRefusal(err error) *Refusal {
	var r *Refusal
	if errors.As(err, &r) {
		return r
	}
	return nil
}
