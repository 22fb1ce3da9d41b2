package core

import (
	"context"
	"path"
	"strings"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/engine/native"
)

// foreign refuses a pid that is not the engine's own browser, by what the process table says of it and nothing else: no window and no
// endpoint is looked at, whatever window the caller named.
func (e *Engine) foreign(ctx context.Context, op engine.Operation, pid int) *engine.Refusal {
	none := engine.Detail{EngineFamily: engine.FamilyUnknown, Product: engine.ProductNone, RequiredProtocol: engine.ProtocolUnknown}
	d, err := e.cfg.Describe(ctx, pid)
	if err != nil {
		r := engine.AsRefusal(err)
		if r == nil {
			none.Limitation = "no_such_process"
			return e.refuse(op, "not_a_browser", none)
		}
		none.Limitation = r.Detail.Limitation
		return e.refuse(op, r.Trigger, none)
	}
	detail, browser := classify(d)
	if !browser {
		none.Limitation = "not_a_browser"
		return e.refuse(op, "not_a_browser", none)
	}
	return e.refuse(op, "unsupported_engine", detail)
}

// classify tells the engine family and product of a process. What is mapped into it outweighs its name: a renamed browser keeps its
// libraries. Nothing is attachable here; the limitation says why for each family.
func classify(d native.Description) (engine.Detail, bool) {
	name := strings.ToLower(path.Base(d.Exe))
	gecko := engine.Detail{EngineFamily: engine.FamilyGecko, Product: engine.ProductOther, RequiredProtocol: engine.ProtocolBiDi,
		Limitation: "remote_agent_requires_launch_time_enablement"}
	webkit := engine.Detail{EngineFamily: engine.FamilyWebKit, Product: engine.ProductOther, RequiredProtocol: engine.ProtocolAutomation,
		Limitation: "no_attachable_runtime_endpoint"}
	chromium := engine.Detail{EngineFamily: engine.FamilyChromium, Product: engine.ProductChromium, RequiredProtocol: engine.ProtocolCDP,
		Limitation: "engine_route_unavailable"}
	products := map[string]engine.Product{
		"firefox": engine.ProductFirefox, "firefox-esr": engine.ProductFirefox, "firefox-bin": engine.ProductFirefox,
		"minibrowser": engine.ProductMiniBrowser, "epiphany": engine.ProductEpiphany, "epiphany-browser": engine.ProductEpiphany, "safari": engine.ProductSafari,
		"chrome": engine.ProductChrome, "google-chrome": engine.ProductChrome, "google-chrome-stable": engine.ProductChrome,
		"chromium": engine.ProductChromium, "chromium-browser": engine.ProductChromium, "msedge": engine.ProductEdge, "microsoft-edge": engine.ProductEdge,
	}
	product, named := products[name]
	for _, lib := range d.Libraries {
		switch {
		case lib == "libxul.so" || lib == "XUL" || lib == "xul.dll":
			if product == engine.ProductFirefox {
				gecko.Product = product
			}
			return gecko, true
		case strings.HasPrefix(lib, "libwebkit2gtk") || strings.HasPrefix(lib, "libwebkitgtk") || strings.HasPrefix(lib, "libWPEWebKit"):
			if product == engine.ProductMiniBrowser || product == engine.ProductEpiphany {
				webkit.Product = product
			}
			return webkit, true
		case strings.HasPrefix(lib, "Qt5WebEngineCore"), strings.HasPrefix(lib, "libQt5WebEngineCore"), strings.HasPrefix(lib, "libQt6WebEngineCore"), lib == "libcef.so":
			chromium.Product = engine.ProductOther
			return chromium, true
		case strings.HasPrefix(lib, "chrome_") && strings.HasSuffix(lib, ".pak"):
			chromium.Product = engine.ProductOther
			if named {
				chromium.Product = product
			}
			return chromium, true
		}
	}
	switch product {
	case engine.ProductFirefox:
		gecko.Product = product
		return gecko, true
	case engine.ProductMiniBrowser, engine.ProductEpiphany, engine.ProductSafari:
		webkit.Product = product
		return webkit, true
	}
	if named {
		chromium.Product = product
		return chromium, true
	}
	for _, word := range []string{"browser", "firefox", "chrom", "webkit", "librewolf", "waterfox", "opera", "vivaldi", "brave", "falkon", "konqueror"} {
		if strings.Contains(name, word) || strings.Contains(strings.ToLower(d.Name), word) {
			return engine.Detail{EngineFamily: engine.FamilyUnknown, Product: engine.ProductOther, RequiredProtocol: engine.ProtocolUnknown,
				Limitation: "engine_route_unavailable"}, true
		}
	}
	return engine.Detail{}, false
}
