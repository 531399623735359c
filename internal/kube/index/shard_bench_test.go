// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/client-go/rest/watch"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
)

// BenchmarkAnEventOfAnotherShard measures what it costs to decode what is then dropped: a change of a chat with a short
// system prompt, and of a message of 4 KiB. That is CPU time, because a machine that does other things is slow, too.
func BenchmarkAnEventOfAnotherShard(b *testing.B) {
	chat := chattest.Generating()
	chat.Spec.SystemPrompt = strings.Repeat("text", 256)
	chat.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("Chat"))
	message := chattest.User("c", "m", chattest.Content(strings.Repeat("text", 1024)))
	message.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("ChatMessage"))
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, v1beta1.GroupVersion)
	if err := v1beta1.AddToScheme(scheme); err != nil {
		b.Fatal(err)
	}
	codecs := serializer.NewCodecFactory(scheme)
	info, ok := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), runtime.ContentTypeJSON)
	if !ok {
		b.Fatal("there is no JSON")
	}
	for name, o := range map[string]runtime.Object{"chat": chat, "message": message} {
		b.Run(name, func(b *testing.B) {
			object, err := json.Marshal(o)
			if err != nil {
				b.Fatal(err)
			}
			event, err := json.Marshal(metav1.WatchEvent{Type: "MODIFIED", Object: runtime.RawExtension{Raw: object}})
			if err != nil {
				b.Fatal(err)
			}
			sent := io.NopCloser(bytes.NewReader(bytes.Repeat(event, b.N)))
			events := watch.NewDecoder(streaming.NewDecoder(info.StreamSerializer.NewFrameReader(sent),
				info.StreamSerializer.Serializer), codecs.UniversalDeserializer())
			before := cpuTime(b)
			for range b.N {
				if _, _, err := events.Decode(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64((cpuTime(b)-before)/1000)/float64(b.N), "CPU-µs/event")
		})
	}
}

// cpuTime is the CPU time of this process so far, in nanoseconds.
func cpuTime(b *testing.B) int64 {
	b.Helper()
	var used unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &used); err != nil {
		b.Fatal(err)
	}
	return used.Nano()
}
