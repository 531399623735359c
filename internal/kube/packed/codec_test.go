// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package packed

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/randfill"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
)

// filler fills objects with whatever an API server could send.
func filler(seed int64) *randfill.Filler {
	return randfill.NewWithSeed(seed).NilChance(0.5).NumElements(0, 3).MaxDepth(20).Funcs(
		func(raw *runtime.RawExtension, c randfill.Continue) {
			raw.Raw = fmt.Appendf(nil, "{%q:1}", c.String(0))
		},
		func(*metav1.FieldsV1, randfill.Continue) {},
		func(s *string, c randfill.Continue) { *s = texts[c.Intn(len(texts))] },
	)
}

var texts = []string{"", "a", "12", "abc", "0f", "0F", "deadbeef", "123", "a-chat-of-somebody", "Ä€😀", "\xff\x00",
	"a9bed9bc-2cf8-4ede-8c80-cdcbc8573208", "A9BED9BC-2CF8-4EDE-8C80-CDCBC8573208", "a9bed9bc2cf84ede8c80cdcbc8573208",
	"{a9bed9bc-2cf8-4ede-8c80-cdcbc857320}", strings.Repeat("long ", 1000)}

// again packs an object with values of indexes, and unpacks it.
func again(words *words, o metav1.Object, values ...[]string) any {
	return newItem(words, o, values).unpack(words, reflect.TypeOf(o).Elem(), len(values))
}

func TestAnObjectComesOutAsItWentIn(t *testing.T) {
	for _, kind := range []func() runtime.Object{
		func() runtime.Object { return &v1beta1.Chat{} }, func() runtime.Object { return &v1beta1.ChatMessage{} },
	} {
		var words words
		for seed := range int64(300) {
			want := kind()
			filler(seed).Fill(want)
			got := again(&words, want.(metav1.Object), nil, []string{"one", "two"})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%T of seed %d: %s", want, seed, diff)
			}
		}
	}
}

func TestAnEmptyListIsNoMissingOne(t *testing.T) {
	var words words
	at := time.Date(2026, 1, 2, 3, 4, 5, 678, time.Local)
	want := &v1beta1.ChatMessage{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{}, Finalizers: []string{},
		CreationTimestamp: metav1.NewTime(at), Generation: -1}, Spec: v1beta1.ChatMessageSpec{Index: new(int64(0))}}
	if diff := cmp.Diff(want, again(&words, want)); diff != "" {
		t.Error(diff)
	}
}

func TestMoreWordsThanAreKeptAreWrittenOut(t *testing.T) {
	var words words
	for i := range mostWords + 10 {
		want := &v1beta1.ChatMessage{Status: v1beta1.ChatMessageStatus{Conditions: []metav1.Condition{
			{Type: "Ready", Reason: fmt.Sprintf("Reason%d", i), Message: strings.Repeat("m", longestWord+1)}}}}
		if diff := cmp.Diff(want, again(&words, want)); diff != "" {
			t.Fatal(diff)
		}
	}
	check.Equal(t, "words are known", mostWords, len(words.known))
}

func TestACodecIsForManyAtOnce(t *testing.T) {
	var words words
	for worker := range 4 {
		t.Run(fmt.Sprint(worker), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(0, uint64(worker)))
			for range 50 {
				want := &v1beta1.Chat{}
				filler(random.Int64()).Fill(want)
				if diff := cmp.Diff(want, again(&words, want)); diff != "" {
					t.Fatal(diff)
				}
			}
		})
	}
}

func TestAnUnknownTypeIsNotPacked(t *testing.T) {
	defer func() {
		check.Contains(t, fmt.Sprint(recover()), "float64")
	}()
	(&writer{}).value(reflect.ValueOf(0.5), false)
}
