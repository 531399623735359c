// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/config"
)

// missing are the names of the manifests of a kind that are not among those of the cluster.
func missing(dir, kind string, present []metav1.PartialObjectMetadata) (names []string) {
	for _, m := range config.Manifests(dir, kind) {
		if !slices.ContainsFunc(present, func(o metav1.PartialObjectMetadata) bool { return o.Name == m.Name }) {
			names = append(names, m.Name)
		}
	}
	return names
}

// roleRights are the rights of a role of config/rbac, in the namespace. Of several names of objects the first one shows
// whether the role is bound.
func roleRights(kind, name, namespace string) (all []authorizationv1.ResourceAttributes) {
	for _, m := range config.Manifests("rbac", kind) {
		for _, rule := range m.Rules {
			for _, resource := range rule.Resources {
				resource, subresource, _ := strings.Cut(resource, "/")
				for _, verb := range rule.Verbs {
					if m.Name == name {
						all = append(all, authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verb,
							Group: rule.APIGroups[0], Resource: resource, Subresource: subresource,
							Name: strings.Join(rule.ResourceNames[:min(1, len(rule.ResourceNames))], "")})
					}
				}
			}
		}
	}
	return all
}

// missingFields are the kinds and fields of this program's API that the published schemas lack. They follow from the Go
// types, so that no list of fields can be outdated. Fields that this program does not know do no harm.
func missingFields(published map[string]map[string]any) (lacks []string) {
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		panic(err) // Cannot happen: the kinds are constants.
	}
	for kind, t := range scheme.KnownTypes(v1beta1.GroupVersion) {
		switch schema, isServed := published["dev.parley.v1beta1."+kind]; {
		case t.PkgPath() != reflect.TypeFor[v1beta1.Chat]().PkgPath() || strings.HasSuffix(kind, "List"):
		case !isServed:
			lacks = append(lacks, kind)
		default:
			lacks = append(lacks, fieldsWithout(schema, t, kind)...)
		}
	}
	slices.Sort(lacks)
	return lacks
}

// fieldsWithout are the paths of the fields of a type without a schema.
func fieldsWithout(schema map[string]any, t reflect.Type, path string) (lacks []string) {
	below := func(name string) map[string]any {
		found, _ := schema[name].(map[string]any)
		return found
	}
	switch t.Kind() {
	case reflect.Pointer:
		return fieldsWithout(schema, t.Elem(), path)
	case reflect.Slice:
		return fieldsWithout(below("items"), t.Elem(), path)
	case reflect.Map:
		return fieldsWithout(below("additionalProperties"), t.Elem(), path)
	case reflect.Struct:
		if reflect.PointerTo(t).Implements(reflect.TypeFor[json.Marshaler]()) {
			return nil
		}
		for field := range t.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			property, isServed := below("properties")[name].(map[string]any)
			switch {
			case name == "metadata":
			case name == "":
				lacks = append(lacks, fieldsWithout(schema, field.Type, path)...)
			case !isServed:
				lacks = append(lacks, path+"."+name)
			default:
				lacks = append(lacks, fieldsWithout(property, field.Type, path+"."+name)...)
			}
		}
	}
	return lacks
}
