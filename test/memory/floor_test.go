// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// floor has two kinds without a schema: what it takes to delete their objects, it takes at least to delete messages.
type floor struct{ owner, message schema.GroupVersionKind }

// installFloor creates the kinds. Kubernetes' controllers must be started later: they look for new kinds now and then.
func installFloor(b *testing.B) floor {
	b.Helper()
	group := schema.GroupVersion{Group: "floor.parley.test", Version: "v1"}
	f := floor{group.WithKind("FloorOwner"), group.WithKind("FloorMessage")}
	for _, kind := range []schema.GroupVersionKind{f.owner, f.message} {
		crds := []*apiextensionsv1.CustomResourceDefinition{floorKind(kind)}
		if _, err := envtest.InstallCRDs(cluster.Config, envtest.CRDInstallOptions{CRDs: crds}); err != nil {
			b.Fatal(err)
		}
		probe := floorObject(kind, metav1.NamespaceDefault, "probe")
		if err := wait.PollUntilContextTimeout(b.Context(), 100*time.Millisecond, patience, true,
			func(ctx context.Context) (bool, error) {
				err := cluster.Client.Create(ctx, probe.DeepCopy())
				return err == nil || apierrors.IsAlreadyExists(err), nil
			}); err != nil {
			b.Fatal(err)
		}
	}
	return f
}

func floorKind(kind schema.GroupVersionKind) *apiextensionsv1.CustomResourceDefinition {
	names := apiextensionsv1.CustomResourceDefinitionNames{Plural: strings.ToLower(kind.Kind) + "s", Kind: kind.Kind}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: names.Plural + "." + kind.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: kind.Group, Names: names, Scope: apiextensionsv1.NamespaceScoped,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: kind.Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: new(true)}},
			}},
		},
	}
}

func floorObject(kind schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetGroupVersionKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// stored is an object with a text as long as that of a message, as the API server would have stored it.
func (f floor) stored(kind schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	o := floorObject(kind, namespace, name)
	o.Object["spec"] = map[string]any{"content": textAtRest}
	o.SetUID(uuid.NewUUID())
	o.SetGeneration(1)
	o.SetCreationTimestamp(metav1.Now())
	return o
}

// measure deletes as many objects as there are messages, in each way.
func (f floor) measure(b *testing.B, of *deletions) {
	b.Helper()
	for _, way := range []struct {
		into   *deletion
		remove func(namespace string)
	}{
		{&of.Floor.OneByOne, func(namespace string) { f.removeEach(b, f.message, namespace, of.Messages) }},
		{&of.Floor.Collection, func(namespace string) {
			if err := cluster.Client.DeleteAllOf(b.Context(), floorObject(f.message, "", ""),
				client.InNamespace(namespace)); err != nil {
				b.Fatal(err)
			}
		}},
		{&of.Floor.Collected, func(namespace string) { f.removeEach(b, f.owner, namespace, of.Chats) }},
		{&of.Floor.OfNamespace, func(namespace string) { removeNamespace(b, namespace) }},
	} {
		namespace := cluster.Namespace(b, "floor")
		f.fill(b, namespace, of)
		*way.into = of.time(b, namespace, f.message, way.remove)
	}
}

// fill makes as many owners as there are chats, each with as many objects as a chat has messages.
func (f floor) fill(b *testing.B, namespace string, of *deletions) {
	b.Helper()
	each := of.Messages / of.Chats
	put(b, of.Chats, func(i int) []client.Object {
		owner := f.stored(f.owner, namespace, nameAtRest(i))
		objects := []client.Object{owner}
		for m := range each {
			message := f.stored(f.message, namespace, nameAtRest(i*each+m))
			message.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, f.owner)})
			objects = append(objects, message)
		}
		return objects
	})
}

// removeEach deletes so many objects one by one.
func (floor) removeEach(b *testing.B, kind schema.GroupVersionKind, namespace string, n int) {
	b.Helper()
	eachOf(b, n, func(ctx context.Context, i int) error {
		return cluster.Client.Delete(ctx, floorObject(kind, namespace, nameAtRest(i)))
	})
}
