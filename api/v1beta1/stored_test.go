// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
)

var writeStored = flag.String("write-stored", "",
	"write objects with all fields of today's types as those of a release, such as v0.1.0")

// kinds are an object of each kind that is stored.
func kinds(t *testing.T) map[string]runtime.Object {
	t.Helper()
	scheme := runtime.NewScheme()
	check.OK(t, v1beta1.AddToScheme(scheme))
	all := map[string]runtime.Object{}
	for kind, of := range scheme.KnownTypes(v1beta1.GroupVersion) {
		if object, ok := reflect.TypeAssert[runtime.Object](reflect.New(of)); ok && of.PkgPath() ==
			reflect.TypeFor[v1beta1.Chat]().PkgPath() && !strings.HasSuffix(kind, "List") {
			all[kind] = object
		}
	}
	return all
}

// TestStoredObjectsOfReleasesKeepAllFields reads what each release can have stored. A field that is renamed, removed or
// of another type is lost here, as it would be in a cluster after an upgrade.
func TestStoredObjectsOfReleasesKeepAllFields(t *testing.T) {
	if *writeStored != "" {
		writeAll(t, filepath.Join("testdata", "stored", *writeStored))
	}
	files, err := filepath.Glob("testdata/stored/*/*.yaml")
	check.OK(t, err)
	if len(files) < len(kinds(t)) {
		t.Fatalf("there are %d stored objects, and %d kinds", len(files), len(kinds(t)))
	}
	for _, file := range files {
		t.Run(strings.TrimPrefix(file, "testdata/stored/"), func(t *testing.T) {
			object := kinds(t)[strings.TrimSuffix(filepath.Base(file), ".yaml")]
			text, err := os.ReadFile(file)
			check.OK(t, err)
			stored, err := yaml.YAMLToJSON(text)
			check.OK(t, err)
			if err := yaml.UnmarshalStrict(text, object); err != nil {
				t.Error(err)
			}
			again, err := json.Marshal(object)
			check.OK(t, err)
			if diff := cmp.Diff(fields(t, stored), fields(t, again)); diff != "" {
				t.Errorf("stored (-) and written again (+):\n%s", diff)
			}
		})
	}
}

func fields(t *testing.T, object []byte) (all map[string]any) {
	t.Helper()
	check.OK(t, json.NewDecoder(bytes.NewReader(object)).Decode(&all))
	return all
}

// writeAll writes an object of each kind in which every field is set.
func writeAll(t *testing.T, dir string) {
	t.Helper()
	check.OK(t, os.MkdirAll(dir, 0o755))
	for kind, object := range kinds(t) {
		of, f := reflect.ValueOf(object).Elem(), filler{}
		for i := range of.NumField() {
			if name := of.Type().Field(i).Name; name != "TypeMeta" && name != "ObjectMeta" {
				f.set(of.Field(i))
			}
		}
		object.GetObjectKind().SetGroupVersionKind(v1beta1.GroupVersion.WithKind(kind))
		text, err := yaml.Marshal(object)
		check.OK(t, err)
		check.OK(t, os.WriteFile(filepath.Join(dir, kind+".yaml"), text, 0o644))
	}
}

// filler sets values, each to another one.
type filler struct{ count int64 }

// set sets a value and all that is in it.
func (f *filler) set(v reflect.Value) {
	f.count++
	at := time.Date(2026, 1, 2, 3, 4, 5, 678_000, time.UTC).Add(time.Duration(f.count) * time.Minute)
	switch v.Type() {
	case reflect.TypeFor[metav1.Time]():
		v.Set(reflect.ValueOf(metav1.NewTime(at.Truncate(time.Second))))
		return
	case reflect.TypeFor[metav1.MicroTime]():
		v.Set(reflect.ValueOf(metav1.NewMicroTime(at)))
		return
	case reflect.TypeFor[runtime.RawExtension]():
		v.Set(reflect.ValueOf(runtime.RawExtension{Raw: fmt.Appendf(nil, `{"a":%d}`, f.count)}))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.set(v.Elem())
	case reflect.Struct:
		for _, field := range v.Fields() {
			f.set(field)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		f.set(v.Index(0))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		element := reflect.New(v.Type().Elem()).Elem()
		f.set(element)
		v.SetMapIndex(reflect.ValueOf("key").Convert(v.Type().Key()), element)
	case reflect.String:
		v.SetString("text" + strconv.FormatInt(f.count, 10))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(f.count)
	case reflect.Float64:
		v.SetFloat(float64(f.count))
	case reflect.Uint8: // of bytes
		v.SetUint(1)
	default:
		panic("no value for " + v.Type().String())
	}
}
