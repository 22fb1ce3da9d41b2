package core

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/engine/enginetest"
	"github.com/engine-acceptance/acceptance/engine/native"
)

// TestForeignBrowsersAreRefusedBeforeAnyProbe is S10, R8 and R10: the same four bounded fields from prepare and from bind, whatever window is
// named, and not one question to the window system or a browser.
func TestForeignBrowsersAreRefusedBeforeAnyProbe(t *testing.T) {
	no := func(limitation string) error {
		return &engine.Refusal{Trigger: "not_a_browser", Detail: engine.Detail{Limitation: limitation}}
	}
	type want struct {
		trigger    string
		family     engine.Family
		product    engine.Product
		protocol   engine.Protocol
		limitation string
	}
	gecko := func(p engine.Product) want {
		return want{"unsupported_engine", engine.FamilyGecko, p, engine.ProtocolBiDi, "remote_agent_requires_launch_time_enablement"}
	}
	webkit := func(p engine.Product) want {
		return want{"unsupported_engine", engine.FamilyWebKit, p, engine.ProtocolAutomation, "no_attachable_runtime_endpoint"}
	}
	chromium := func(p engine.Product) want {
		return want{"unsupported_engine", engine.FamilyChromium, p, engine.ProtocolCDP, "engine_route_unavailable"}
	}
	none := func(limitation string) want {
		return want{"not_a_browser", engine.FamilyUnknown, engine.ProductNone, engine.ProtocolUnknown, limitation}
	}
	for name, c := range map[string]struct {
		exe  string
		libs []string
		err  error
		want want
	}{
		"firefox":                 {"/usr/lib/firefox-esr/firefox-esr", []string{"libxul.so"}, nil, gecko(engine.ProductFirefox)},
		"firefox_not_yet_mapped":  {"/usr/lib/firefox/firefox", nil, nil, gecko(engine.ProductFirefox)},
		"renamed_firefox":         {"/tmp/x/notepad", []string{"libc.so.6", "libxul.so"}, nil, gecko(engine.ProductOther)},
		"firefox_called_chromium": {"/tmp/x/chromium", []string{"libxul.so"}, nil, gecko(engine.ProductOther)},
		"minibrowser":             {"/usr/lib/webkit2gtk-4.1/MiniBrowser", []string{"libwebkit2gtk-4.1.so.0"}, nil, webkit(engine.ProductMiniBrowser)},
		"epiphany":                {"/usr/bin/epiphany", []string{"libwebkitgtk-6.0.so.4"}, nil, webkit(engine.ProductEpiphany)},
		"other_webkit":            {"/usr/bin/surf", []string{"libwebkit2gtk-4.1.so.0.13.7"}, nil, webkit(engine.ProductOther)},
		"safari":                  {"/Applications/Safari.app/Contents/MacOS/Safari", nil, nil, webkit(engine.ProductSafari)},
		"chromium_of_somebody":    {"/usr/lib/chromium/chromium", nil, nil, chromium(engine.ProductChromium)},
		"chrome":                  {"/opt/google/chrome/chrome", nil, nil, chromium(engine.ProductChrome)},
		"edge":                    {"/opt/microsoft/msedge/msedge", nil, nil, chromium(engine.ProductEdge)},
		"renamed_chromium":        {"/tmp/x/editor", []string{"chrome_100_percent.pak"}, nil, chromium(engine.ProductOther)},
		"unknown_browser":         {"/usr/bin/netsurfbrowser", nil, nil, want{"unsupported_engine", engine.FamilyUnknown, engine.ProductOther, engine.ProtocolUnknown, "engine_route_unavailable"}},
		"xterm":                   {"/usr/bin/xterm", []string{"libX11.so.6"}, nil, none("not_a_browser")},
		"own_process":             {"", nil, no("own_process"), none("own_process")},
		"another_users":           {"", nil, no("foreign_user"), none("foreign_user")},
		"dead":                    {"", nil, no("no_such_process"), none("no_such_process")},
		"a_fault_of_the_platform": {"", nil, errors.New("boom"), none("no_such_process")},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, enginetest.NewFake(), func(cfg *Config) {
				cfg.Describe = func(context.Context, int) (native.Description, error) {
					return native.Description{Process: engine.Process{PID: 77, Exe: c.exe}, Libraries: c.libs}, c.err
				}
			})
			s := w.OK(engine.OpSessionStart, struct{}{}).Session.ID
			w.fake.Set(enginetest.DefectNoDisplay, true)
			var all []*engine.Refusal
			for _, window := range []uint32{0, 1, 0xffffffff} {
				started := time.Now()
				all = append(all, w.Refused(engine.OpPrepare, engine.PrepareRequest{Session: s, PID: 77, WindowID: window, Profile: engine.Profile{Kind: engine.PostureExisting}}))
				w.Expect(time.Since(started)).To(gomega.BeNumerically("<", 50*time.Millisecond)) // R7
				bound := w.Refused(engine.OpState, engine.StateRequest{Session: s, Mode: engine.ModeBind, PID: 77, WindowID: window})
				bound.Operation = engine.OpPrepare
				all = append(all, bound)
			}
			for _, r := range all {
				w.Expect(r).To(gomega.Equal(all[0]))
			}
			d := all[0].Detail
			w.Expect(want{all[0].Trigger, d.EngineFamily, d.Product, d.RequiredProtocol, d.Limitation}).To(gomega.Equal(c.want))
			w.Expect(w.fake.Asked()).To(gomega.BeZero())
			w.Expect(entries(w.root)).To(gomega.BeZero())
		})
	}
}
