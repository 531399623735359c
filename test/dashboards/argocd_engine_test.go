// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	appv1 "github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1"
	"github.com/argoproj/argo-cd/v3/util/lua"
	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"parley.dev/parley/test/kit/testcluster"
)

// argo is Argo CD's interpreter with what config/gitops puts into its settings.
func argo(t *testing.T) lua.VM {
	t.Helper()
	overrides := map[string]appv1.ResourceOverride{}
	for _, file := range []string{"argocd-health.yaml", "argocd-actions.yaml"} {
		text, err := os.ReadFile(testcluster.Path("config", "gitops", file))
		if err != nil {
			t.Fatal(err)
		}
		var settings corev1.ConfigMap
		if err := yaml.UnmarshalStrict(text, &settings); err != nil {
			t.Fatalf("reading %s: %v", file, err)
		}
		for key, value := range settings.Data {
			what, kind, _ := strings.Cut(strings.TrimPrefix(key, "resource.customizations."), ".")
			kind = strings.Replace(kind, "_", "/", 1)
			override := overrides[kind]
			switch what {
			case "health":
				override.HealthLua = value
			case "actions":
				override.Actions = value
			default:
				t.Fatalf("%s has the key %s, which means nothing to Argo CD", file, key)
			}
			overrides[kind] = override
		}
	}
	return lua.VM{ResourceOverrides: overrides}
}

// possible are the actions that Argo CD lists for the object, and whether it lets people take them.
func possible(t *testing.T, vm lua.VM, o *unstructured.Unstructured) map[string]bool {
	t.Helper()
	scripts, err := vm.GetResourceActionDiscovery(o)
	if err != nil {
		t.Fatal(err)
	}
	actions, err := vm.ExecuteResourceActionDiscovery(o, scripts)
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, action := range actions {
		if action.DisplayName == "" || action.IconClass == "" {
			t.Errorf("action %s is shown as %q with the icon %q", action.Name, action.DisplayName, action.IconClass)
		}
		listed[action.Name] = !action.Disabled
	}
	return listed
}

// take takes an action as Argo CD's server does: it runs the script on what is there, and sends what the script has
// changed as a merge patch. It returns that patch; empty if nothing was left to change.
func take(t *testing.T, vm lua.VM, o *unstructured.Unstructured, name string) string {
	t.Helper()
	c := as(t, argocd)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatal(err)
	}
	action, err := vm.GetResourceAction(o, name)
	if err != nil {
		t.Fatal(err)
	}
	impacted, err := vm.ExecuteResourceAction(o, action.ActionLua, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(impacted) != 1 || impacted[0].K8SOperation != lua.PatchOperation {
		t.Fatalf("action %s asks for %v", name, impacted)
	}
	patch, err := jsonpatch.CreateMergePatch(asJSON(t, o), asJSON(t, impacted[0].UnstructuredObj))
	if err != nil {
		t.Fatal(err)
	}
	if string(patch) == "{}" {
		return ""
	}
	if err := c.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, patch)); err != nil {
		t.Fatalf("action %s patches %s: %v", name, patch, err)
	}
	return string(patch)
}

func asJSON(t *testing.T, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
