// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/health"
	lua "github.com/yuin/gopher-lua"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"parley.dev/parley/test/kit/testcluster"
)

// luaHealth runs the health checks of config/gitops/argocd-health.yaml, keyed as in argocd-cm, in the interpreter that
// Argo CD uses and with no more of its libraries than Argo CD opens for a user's script.
type luaHealth map[string]string

func readHealth(t *testing.T) luaHealth {
	t.Helper()
	text, err := os.ReadFile(testcluster.Path("config", "gitops", "argocd-health.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var settings corev1.ConfigMap
	if err := yaml.UnmarshalStrict(text, &settings); err != nil {
		t.Fatal(err)
	}
	return settings.Data
}

// GetResourceHealth implements health.HealthOverride.
func (h luaHealth) GetResourceHealth(o *unstructured.Unstructured) (*health.HealthStatus, error) {
	gvk := o.GroupVersionKind()
	script, ok := h["resource.customizations.health."+gvk.Group+"_"+gvk.Kind]
	if !ok {
		return nil, nil
	}
	l := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer l.Close()
	for name, open := range map[string]lua.LGFunction{lua.LoadLibName: lua.OpenPackage, lua.BaseLibName: lua.OpenBase,
		lua.TabLibName: lua.OpenTable} {
		if err := l.CallByParam(lua.P{Fn: l.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			return nil, fmt.Errorf("opening %s: %w", name, err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	l.SetContext(ctx)
	l.SetGlobal("obj", luaValue(l, o.Object))
	if err := l.DoString(script); err != nil {
		return nil, fmt.Errorf("running the health check of %s: %w", gvk.Kind, err)
	}
	table, ok := l.Get(-1).(*lua.LTable)
	if !ok {
		return nil, fmt.Errorf("the health check of %s returned a %s", gvk.Kind, l.Get(-1).Type())
	}
	return &health.HealthStatus{
		Status:  health.HealthStatusCode(lua.LVAsString(table.RawGetString("status"))),
		Message: lua.LVAsString(table.RawGetString("message")),
	}, nil
}

// luaValue hands a JSON value over as Argo CD does.
func luaValue(l *lua.LState, value any) lua.LValue {
	switch v := value.(type) {
	case bool:
		return lua.LBool(v)
	case float64:
		return lua.LNumber(v)
	case int64:
		return lua.LNumber(v)
	case string:
		return lua.LString(v)
	case []any:
		table := l.CreateTable(len(v), 0)
		for _, item := range v {
			table.Append(luaValue(l, item))
		}
		return table
	case map[string]any:
		table := l.CreateTable(0, len(v))
		for key, item := range v {
			table.RawSetH(lua.LString(key), luaValue(l, item))
		}
		return table
	}
	return lua.LNil
}
