// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// podOptions are options of the pods that the manager creates, as docs/how-to/installing.md has them.
const podOptions = `
labels: {team: install}
imagePullSecrets: [{name: registry}]
nodeSelector: {kubernetes.io/os: linux}
priorityClassName: low`

// way is a way to install and uninstall Parley, for a list of namespaces if there are any.
type way struct {
	install   func(t *testing.T, namespaces []string)
	uninstall func(t *testing.T)
}

// kustomized is a way with kustomize. The base is config/default or the manifest of the release.
func kustomized(base func(t *testing.T, dir string) string) way {
	var dir string
	return way{func(t *testing.T, namespaces []string) {
		dir = t.TempDir()
		write(t, dir, "bindings.yaml", bindings(namespaces))
		write(t, dir, "kustomization.yaml", overlay(t, dir, base(t, dir), namespaces))
		kubectl(t, "apply", "--server-side", "-k", dir)
		kubectl(t, "apply", "--server-side", "-f", filepath.Join(release, "stamp.yaml"))
	}, func(t *testing.T) {
		kubectl(t, "delete", "--ignore-not-found", "--timeout=2m", "-f", filepath.Join(release, "stamp.yaml"))
		kubectl(t, "delete", "--ignore-not-found", "--timeout=2m", "-k", dir)
		removeFromNamespaces(t)
	}}
}

func checkout(t *testing.T, dir string) string {
	t.Helper()
	base, err := filepath.Rel(dir, filepath.Join(root, "config", "default"))
	if err != nil {
		t.Fatal(err)
	}
	return base
}

func manifest(t *testing.T, dir string) string {
	t.Helper()
	copyFile(t, filepath.Join(release, "install.yaml"), dir)
	return "install.yaml"
}

// overlay is a kustomization with the image by digest, a pull Secret and options of pods, for the namespaces if there
// are any. It copies the component config/pods.
func overlay(t *testing.T, dir, base string, namespaces []string) string {
	t.Helper()
	copyFile(t, filepath.Join(root, "config", "pods", "kustomization.yaml"), filepath.Join(dir, "pods"))
	write(t, dir, "pods/pods.yaml",
		fmt.Sprintf("generation:%[1]s\nworkspaces:%[1]s\n", strings.ReplaceAll(podOptions, "\n", "\n  ")))
	name, digest, _ := strings.Cut(reference, "@")
	name, tag := name[:strings.LastIndex(name, ":")], name[strings.LastIndex(name, ":")+1:]
	text := fmt.Sprintf(kustomization, base, name, tag, digest)
	if len(namespaces) > 0 {
		text = strings.Replace(text, "\ncomponents", "\n- bindings.yaml\ncomponents", 1) +
			fmt.Sprintf(limited, strings.Join(namespaces, ","))
	}
	return text
}

const kustomization = `
resources:
- %[1]s
components: [pods]
images:
- {name: parley.dev/parley, newName: %[2]q, newTag: %[3]s, digest: %[4]q}
replacements:
- source: {kind: Deployment, name: parley-manager, fieldPath: "spec.template.spec.containers.[name=manager].image"}
  targets:
  - select: {kind: Deployment, name: parley-manager}
    fieldPaths: ["spec.template.spec.containers.[name=manager].env.[name=PARLEY_IMAGE].value"]
patches:
- target: {kind: Deployment}
  patch: |-
    - {op: add, path: /spec/template/spec/imagePullSecrets, value: [{name: registry}]}
`

// limited are the patches that limit Parley to namespaces, with rights in these alone.
const limited = `
- target: {kind: Deployment}
  patch: |-
    - {op: add, path: /spec/template/spec/containers/0/env/-, value: {name: PARLEY_NAMESPACES, value: %q}}
- target: {kind: ClusterRoleBinding, name: parley-(manager|gateway)}
  patch: |-
    $patch: delete
    apiVersion: rbac.authorization.k8s.io/v1
    kind: ClusterRoleBinding
    metadata: {name: any}
`

// bindings give the manager and the gateway their rights in the namespaces.
func bindings(namespaces []string) string {
	var all strings.Builder
	for _, namespace := range namespaces {
		for _, account := range []string{"parley-manager", "parley-gateway"} {
			fmt.Fprintf(&all, `---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: %[1]s, namespace: %[2]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %[1]s}
subjects: [{kind: ServiceAccount, name: %[1]s, namespace: parley-system}]
`, account, namespace)
		}
	}
	return all.String()
}

// byHelm is the chart, with values for all pods and others.
func byHelm(values string) way {
	return way{func(t *testing.T, namespaces []string) {
		file := write(t, t.TempDir(), "values.yaml", fmt.Sprintf(`
global:
  imagePullSecrets: [{name: registry}]
  commonLabels: {team: install}
  nodeSelector: {kubernetes.io/os: linux}
  priorityClassName: low
namespaces: [%s]
%s`, strings.Join(namespaces, ", "), values))
		helm(t, "install", "parley", chart(), "--namespace="+system, "--values="+file, "--wait")
		helm(t, "upgrade", "parley", chart(), "--namespace="+system, "--reset-then-reuse-values", "--wait")
	}, func(t *testing.T) {
		helm(t, "uninstall", "parley", "--namespace="+system, "--wait")
		removeFromNamespaces(t)
		kubectl(t, "get", "chats", "--all-namespaces") // The resource definitions are kept.
		kubectl(t, "delete", "crd", "-l", "app.kubernetes.io/name=parley")
		kubectl(t, "delete", "namespace", system)
	}}
}

// chart is the file with the chart of the release.
func chart() string {
	return filepath.Join(release, "parley-"+strings.TrimPrefix(filepath.Base(release), "v")+".tgz")
}

// removeFromNamespaces deletes what the manager created in the namespaces with chats, as the documentation says.
func removeFromNamespaces(t *testing.T) {
	t.Helper()
	kubectl(t, "delete", "--timeout=2m", "pods,serviceaccounts,roles,rolebindings,networkpolicies,configmaps",
		"--all-namespaces", "--selector=app.kubernetes.io/name=parley")
	claims := kubectl(t, "get", "pvc", "--all-namespaces", "--selector=app.kubernetes.io/name=parley",
		`-o=jsonpath={range .items[?(@.metadata.ownerReferences)]}{.metadata.namespace} {.metadata.name}{"\n"}{end}`)
	for claim := range strings.Lines(claims) {
		kubectl(t, append([]string{"delete", "pvc", "--ignore-not-found", "--timeout=2m", "-n"}, strings.Fields(claim)...)...)
	}
}

// set installs Parley, and waits as the documentation says. When the test ends, it uninstalls Parley and checks that
// nothing of it is left. The namespaces must exist until then.
func (w way) set(t *testing.T, namespaces ...string) {
	t.Helper()
	w.install(t, namespaces)
	t.Cleanup(func() {
		w.uninstall(t)
		checkNothingIsLeft(t)
	})
	for _, name := range []string{"parley-manager", "parley-gateway"} {
		kubectl(t, "-n", system, "rollout", "status", "deployment/"+name, "--timeout=180s")
	}
}

func TestEveryWayToInstallAnswersChats(t *testing.T) {
	for name, way := range map[string]way{
		"kustomize": kustomized(checkout), "manifest": kustomized(manifest), "Helm": byHelm(""),
	} {
		t.Run(name, func(t *testing.T) {
			newNamespace(t, system)
			newWorld(t, "chats")
			way.set(t)
			askModel(t, "chats")
			if got := awaitAnswer(t, "chats"); !strings.Contains(got, "user 65532") {
				t.Errorf("the tool's result is %q", got)
			}
			checkPods(t, "chats")
		})
	}
}

// untouched is the status of a chat that no manager has read: the default of the schema.
const untouched = `{"observedGeneration":-1}`

func TestListOfNamespacesLeavesOthersAlone(t *testing.T) {
	for name, way := range map[string]way{"kustomize": kustomized(checkout), "Helm": byHelm("")} {
		t.Run(name, func(t *testing.T) {
			newNamespace(t, system)
			newWorld(t, "listed")
			newWorld(t, "other")
			way.set(t, "listed")
			askModel(t, "other")
			askModel(t, "listed")
			awaitAnswer(t, "listed")
			checkPods(t, "listed")
			if got := kubectl(t, "-n", "other", "get", "chat", "c", "-o=jsonpath={.status}"); got != untouched {
				t.Errorf("the chat in a namespace that is not in the list has the status %s", got)
			}
			if got := kubectl(t, "-n", "other", "get", "pods", "-l=parley.dev/component", "-o=name"); got != "" {
				t.Errorf("a namespace that is not in the list has %s", got)
			}
			checkRights(t)
		})
	}
}

// checkRights checks that the accounts have their rights in the namespace of the list alone.
func checkRights(t *testing.T) {
	t.Helper()
	for _, right := range []string{"parley-manager create pods", "parley-manager list chats.parley.dev",
		"parley-manager get configmaps", "parley-gateway list pods", "parley-gateway list chats.parley.dev"} {
		account, right, _ := strings.Cut(right, " ")
		verb, resource, _ := strings.Cut(right, " ")
		for namespace, want := range map[string]string{"listed": "yes", "other": "no"} {
			got, _ := try(t, "", "auth", "can-i", verb, resource, "--namespace="+namespace,
				"--as=system:serviceaccount:"+system+":"+account)
			if strings.TrimSpace(got) != want {
				t.Errorf("may %s %s in %s: %s, want %s", account, right, namespace, got, want)
			}
		}
	}
}
