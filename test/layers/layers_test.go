// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package layers holds the rules of who may import whom. They are what keeps decisions free of clients and clocks, the
// relay small, and one kind's controller ignorant of another's.
package layers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"parley.dev/parley/test/kit/check"
)

const module = "parley.dev/parley/"

// goPackage is what "go list -json" says of a package, as far as the rules go.
type goPackage struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

func (p goPackage) in(prefixes ...string) bool {
	return under(strings.TrimPrefix(p.ImportPath, module), prefixes...)
}

func under(path string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool {
		return path == prefix || strings.HasPrefix(path, prefix+"/")
	})
}

func packages(t *testing.T) []goPackage {
	t.Helper()
	all, err := listed()
	check.OK(t, err)
	return all
}

// listed are the packages of the module. Each listing takes seconds.
var listed = sync.OnceValues(func() (all []goPackage, err error) {
	list := exec.CommandContext(context.Background(), "go", "list", "-json=ImportPath,Imports,Deps", module+"...")
	list.Dir = "../.."
	var stderr bytes.Buffer
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("listing packages: %w\n%s", err, stderr.String())
	}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("decoding what go list prints: %w", err)
		}
		all = append(all, p)
	}
	if len(all) < 20 {
		return nil, fmt.Errorf("found only %d packages", len(all))
	}
	return all, nil
})

// rule forbids imports.
type rule struct {
	name string
	// from are the packages that the rule is about, below the module.
	from []string
	// transitive also forbids what the imports import.
	transitive bool
	// forbids reports whether the package may not import the path.
	forbids func(p goPackage, path string) bool
}

var pure = []string{
	"internal/chat", "internal/pods/placement", "internal/pods/podspec", "internal/pods/podstate",
	"api/stream/parts", "internal/pods/capacity", "internal/pods/modellimits", "internal/approval/toolpolicy",
	"internal/text/clip", "internal/text/printable", "internal/netguard/hostlist", "internal/text/content",
	"internal/text/firstwords", "internal/kube/satoken", "internal/kube/shard", "internal/text/skill",
	"internal/text/jsonschema", "internal/mcp/reference", "internal/generation/prompt",
	"internal/generation/prompt/compaction", "internal/generation/advisor",
	"internal/generation/observe/redact", "internal/generation/captions/wording", "internal/workspace/template",
	"internal/workspace/life", "internal/cli/doctor",
}

// ranks order what stands on what in a generation pod. Packages that are not here stand below all of them.
var ranks = map[string]int{
	"internal/generation/models": 1, "internal/generation/observe": 2,
	"internal/generation/step": 3, "internal/generation/captions": 3, "internal/generation/runner": 4,
}

func rank(path string) int { return ranks[strings.TrimPrefix(path, module)] }

// The packages below provider: protocols build requests and read replies, wire has what they share, finish how replies
// end, and fault what errors mean.
const (
	provider = "internal/generation/provider"
	fault    = provider + "/fault"
	finish   = provider + "/finish"
	wire     = provider + "/wire"
)

var protocols = []string{
	provider + "/chatcompletions", provider + "/messages", provider + "/gemini", provider + "/responses",
}

// sdks are the providers' libraries.
var sdks = []string{
	"github.com/openai/openai-go", "github.com/anthropics/anthropic-sdk-go", "google.golang.org/genai",
	"github.com/aws/aws-sdk-go-v2", "charm.land/fantasy/providers",
}

var rules = []rule{
	{"the API imports nothing of ours and no client", []string{"api"}, true, func(_ goPackage, path string) bool {
		return strings.HasPrefix(path, module+"internal") || under(path, "k8s.io/client-go", "sigs.k8s.io/controller-runtime")
	}},
	{"the gateway's client links no client of Kubernetes, and of ours the API alone", []string{"client"}, true,
		func(_ goPackage, path string) bool {
			return under(path, "k8s.io/client-go", "sigs.k8s.io/controller-runtime") ||
				strings.HasPrefix(path, module) && !under(strings.TrimPrefix(path, module), "api", "client")
		}},
	{"decisions know no client, no clock of the cluster and no logger", pure, false, func(_ goPackage, path string) bool {
		return under(path, "k8s.io/client-go", "sigs.k8s.io/controller-runtime",
			"github.com/go-logr/logr", "log/slog", "net/http", "os")
	}},
	{"nor does what they stand on know a client", pure, true, func(_ goPackage, path string) bool {
		return under(path, "k8s.io/client-go", "sigs.k8s.io/controller-runtime", module+"internal/kube/apiclient",
			module+"internal/telemetry/tracing")
	}},
	{"fence, parts, framelog, clip, printable, protocol of workspaces depend on the standard library alone",
		[]string{"internal/chat/fence", "api/stream/parts", "internal/stream/framelog", "internal/text/clip", "internal/text/printable",
			"internal/workspace/protocol"}, true,
		func(_ goPackage, path string) bool {
			return strings.Contains(strings.SplitN(path, "/", 2)[0], ".") && !strings.HasPrefix(path, module)
		}},
	{"who asks a workspace depends on the standard library, and on what makes texts safe",
		[]string{"internal/workspace/protocol", "internal/workspace/client"}, true,
		func(p goPackage, path string) bool {
			local, ours := strings.CutPrefix(path, module)
			if !ours {
				return strings.Contains(strings.SplitN(path, "/", 2)[0], ".")
			}
			return p.in("internal/workspace/protocol") ||
				!under(local, "api/changes", "internal/text/clip", "internal/text/printable", "internal/workspace/protocol")
		}},
	{"tools do not know what runs them, nor who asks for them", []string{"internal/tools"}, false,
		func(_ goPackage, path string) bool {
			return under(path, module+"internal/generation", module+"internal/stream",
				module+"internal/kube/apiclient")
		}},
	{"the relay links neither Kubernetes nor fantasy", []string{"internal/stream/relay", "cmd/relay"}, true,
		func(_ goPackage, path string) bool {
			return under(path, "k8s.io", "sigs.k8s.io", "charm.land/fantasy")
		}},
	{"the agent of a workspace links neither Kubernetes nor fantasy",
		[]string{"internal/workspace/agent", "cmd/workspace-agent"}, true, func(_ goPackage, path string) bool {
			return under(path, "k8s.io", "sigs.k8s.io", "charm.land/fantasy")
		}},
	{"telemetry links neither Kubernetes nor a model, and metrics no OpenTelemetry", []string{"internal/telemetry"}, true,
		func(p goPackage, path string) bool {
			return under(path, "k8s.io", "sigs.k8s.io", "charm.land/fantasy") || !p.in("internal/telemetry/tracing") &&
				under(path, "go.opentelemetry.io")
		}},
	{"relay and gateway measure, but do not trace", []string{"cmd/relay", "cmd/gateway"}, true,
		func(_ goPackage, path string) bool {
			return under(path, module+"internal/telemetry/tracing")
		}},
	{"controllers do not know each other, nor what pods do", []string{"controllers"}, false,
		func(p goPackage, path string) bool {
			local := strings.TrimPrefix(path, module)
			sibling := under(local, "controllers") && p.ImportPath != module+"controllers"
			return sibling || under(local, "internal/generation", "internal/stream/relay", "internal/gateway",
				"internal/tools") || under(path, "charm.land/fantasy")
		}},
	{"what runs in generation pods has no controller-runtime",
		[]string{"internal/generation", "internal/tools", "internal/kube/apiclient", "cmd/generator"}, true,
		func(_ goPackage, path string) bool {
			return under(path, "sigs.k8s.io/controller-runtime") || under(path, module+"controllers")
		}},
	{"what a generation pod stands on knows nothing of what stands on it", []string{"internal/generation"}, false,
		func(p goPackage, path string) bool {
			return rank(path) > 0 && rank(path) >= rank(p.ImportPath)
		}},
	{"gateway and plug-in know no controller and no model",
		[]string{"internal/gateway", "internal/cli", "cmd/gateway", "cmd/kubectl-chat"}, true,
		func(_ goPackage, path string) bool {
			return under(path, module+"controllers", "charm.land/fantasy", "sigs.k8s.io/controller-runtime")
		}},
	{"what the plug-in prints and reads from a terminal asks no cluster",
		[]string{"internal/cli/converse", "internal/cli/render", "internal/cli/terminal"}, false, func(_ goPackage, path string) bool {
			return under(path, "net/http", "k8s.io/client-go", module+"internal/kube", module+"internal/cli/cluster",
				module+"internal/cli/verbs")
		}},
	{"libraries of terminal applications are for the conversation alone",
		[]string{"api", "client", "cmd", "controllers", "internal"}, false, func(p goPackage, path string) bool {
			return !p.in("internal/cli/converse") && under(path, "charm.land/bubbletea", "charm.land/bubbles",
				"charm.land/glamour", "charm.land/lipgloss", "github.com/yuin/goldmark", "github.com/charmbracelet/x/ansi")
		}},
	{"what reads the plug-in's objects prints nothing", []string{"internal/cli/cluster"}, true, func(_ goPackage, path string) bool {
		return under(path, module+"internal/cli/render", module+"internal/cli/terminal", module+"internal/cli/verbs",
			module+"internal/cli/converse")
	}},
	{"nothing imports fantasy's providers, nor the fork of OpenAI's library that they need", []string{""}, true,
		func(_ goPackage, path string) bool {
			return under(path, "charm.land/fantasy/providers", "github.com/charmbracelet/openai-go")
		}},
	{"protocols do not import each other", protocols, true, func(p goPackage, path string) bool {
		return under(strings.TrimPrefix(path, module), protocols...) && path != p.ImportPath
	}},
	{"wire imports no protocol", []string{wire}, true, func(_ goPackage, path string) bool {
		return under(path, module+provider) && !under(path, module+wire, module+finish)
	}},
	{"errors are explained without what calls models", []string{fault}, true, func(_ goPackage, path string) bool {
		return under(path, sdks...) ||
			under(path, module+provider) && !under(path, module+finish, module+fault)
	}},
	{"what guards HTTP clients, retries and limits knows neither Kubernetes nor a model, and of ours lists of hosts alone",
		[]string{"internal/netguard/httpguard", "internal/netguard/retry", "internal/netguard/limit"}, true, func(_ goPackage, path string) bool {
			return under(path, "k8s.io", "sigs.k8s.io", "charm.land/fantasy") ||
				strings.HasPrefix(path, module) && path != module+"internal/netguard/hostlist"
		}},
	{"nothing stands on the suites of tests", []string{"api", "client", "cmd", "controllers", "internal"}, false,
		func(_ goPackage, path string) bool { return under(path, module+"test") }},
	{"commands are imported by nobody", []string{""}, false,
		func(_ goPackage, path string) bool { return under(path, module+"cmd") }},
}

func TestImportsKeepTheLayers(t *testing.T) {
	all := packages(t)
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			found := false
			for _, p := range all {
				if r.from[0] != "" && !p.in(r.from...) {
					continue
				}
				found = true
				imports := p.Imports
				if r.transitive {
					imports = p.Deps
				}
				for _, path := range imports {
					if r.forbids(p, path) {
						t.Errorf("%s imports %s", p.ImportPath, path)
					}
				}
			}
			if !found {
				t.Errorf("no package is in %v: the rule holds nothing", r.from)
			}
		})
	}
}
