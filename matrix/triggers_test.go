package matrix_test

import (
	"slices"

	"github.com/engine-acceptance/acceptance/engine"
)

// triggers is the refusal vocabulary that these tests load with: the ids and codes of the refusal table.
type triggers map[string]engine.Code

func (t triggers) Code(id string) (engine.Code, bool) { c, ok := t[id]; return c, ok }

func (t triggers) Triggers() []string {
	var ids []string
	for id := range t {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

var table = triggers{
	"unsupported_engine": engine.CodeRouteUnavailable, "not_a_browser": engine.CodeRouteUnavailable, "environment": engine.CodeRouteUnavailable,
	"launch_failed": engine.CodeRouteUnavailable, "unresponsive": engine.CodeRouteUnavailable, "protocol_violation": engine.CodeRouteUnavailable,
	"endpoint_absent": engine.CodeRequiresSetup, "owner_approval_absent": engine.CodeRequiresSetup,
	"no_approval": engine.CodeConsentRequired, "approval_mismatch": engine.CodeConsentRequired, "approval_expired": engine.CodeConsentRequired,
	"approval_invalid": engine.CodeConsentRequired, "revoked": engine.CodeConsentRevoked,
	"several_fit": engine.CodeBindingAmbiguous, "generation_changed": engine.CodeBindingStale, "reconnect_unsupported": engine.CodeBindingStale,
	"wrong_target": engine.CodeWrongTarget, "tab_required": engine.CodeTabRequired, "tab_gone": engine.CodeTabNotFound, "ref_retired": engine.CodeRefStale,
	"endpoint_owner": engine.CodeEndpointOwnerMismatch, "reconnect_budget": engine.CodeReconnectExhausted,
	"would_touch_desk": engine.CodeInputTrustUnavailable, "prefix_only": engine.CodeInputIncomplete,
	"undeclared": engine.CodeActionUnavailable, "control_cannot": engine.CodeActionUnavailable, "dialog": engine.CodeActionUnavailable,
	"argument": engine.CodeActionUnavailable, "value_changed": engine.CodeActionUnavailable, "frame_stale": engine.CodeActionUnavailable,
	"transfer_ended": engine.CodeActionUnavailable, "origin_left": engine.CodeOriginOutsideScope,
}
