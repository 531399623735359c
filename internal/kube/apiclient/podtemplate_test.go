// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package apiclient_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/test/kit/check"
)

// templates is an API server with so many PodTemplates, each with that many bytes in its environment. It returns a
// client of it, and the queries that it was asked.
func templates(t *testing.T, count, bytes int) (*apiclient.Client, *[]string) {
	t.Helper()
	var asked []string
	environment := strings.Repeat("x", bytes)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		asked = append(asked, fmt.Sprintf("%s from %q", query.Get("limit"), query.Get("continue")))
		from, _ := strconv.Atoi(query.Get("continue")) // The first page is from 0 on.
		limit, _ := strconv.Atoi(query.Get("limit"))
		end, next := min(count, from+limit), ""
		if end < count {
			next = strconv.Itoa(end)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"kind":"PodTemplateList","apiVersion":"v1","metadata":{"resourceVersion":"9","continue":%q},"items":[`, next)
		for i := from; i < end; i++ {
			if i > from {
				_, _ = io.WriteString(w, ",") // Who has read enough hangs up.
			}
			_, _ = fmt.Fprintf(w, `{"metadata":{"name":"t%d","annotations":{"a":"b"}},"template":{"spec":{"containers":[{"name":"c",`+
				`"image":"i","env":[{"name":"E","value":"`, i)
			_, _ = io.WriteString(w, environment)
			if _, err := io.WriteString(w, `"}]}]}}}`); err != nil {
				return
			}
		}
		_, _ = io.WriteString(w, "]}")
	}))
	t.Cleanup(server.Close)
	c, err := apiclient.New(&rest.Config{Host: server.URL}, "parley-test/1")
	check.OK(t, err)
	return c, &asked
}

func TestPodTemplateListIsPagedAndBounded(t *testing.T) {
	for name, tt := range map[string]struct {
		count, most, want int
		more              bool
		asked             []string
	}{
		"none":              {0, 30, 0, false, []string{`20 from ""`}},
		"a page":            {20, 30, 20, false, []string{`20 from ""`}},
		"more than a page":  {25, 30, 25, false, []string{`20 from ""`, `10 from "20"`}},
		"as many as may be": {30, 30, 30, false, []string{`20 from ""`, `10 from "20"`}},
		"more than may be":  {31, 30, 30, true, []string{`20 from ""`, `10 from "20"`}},
	} {
		t.Run(name, func(t *testing.T) {
			c, asked := templates(t, tt.count, 10)
			all, more, err := c.PodTemplates(t.Context(), "ns", "", tt.most, 1<<20)
			if err != nil || len(all) != tt.want || more != tt.more || fmt.Sprint(*asked) != fmt.Sprint(tt.asked) {
				t.Fatalf("asked for %q; got %d, more: %t, %v", *asked, len(all), more, err)
			}
			for i, one := range all {
				if one.Metadata.Name != fmt.Sprint("t", i) || one.Metadata.Annotations["a"] != "b" ||
					one.Template.Spec.Containers[0].Image != "i" {
					t.Errorf("number %d is %+v", i, one)
				}
			}
		})
	}
}

func TestLargePodTemplatesTakeABoundedMemory(t *testing.T) {
	c, asked := templates(t, 200, 1<<20)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	all, more, err := c.PodTemplates(t.Context(), "ns", "", 200, 4<<20)
	runtime.ReadMemStats(&after)
	if err != nil || len(all) != 3 || !more || len(*asked) != 1 { // The fourth is cut off.
		t.Errorf("asked for %q; got %d, more: %t, %v", *asked, len(all), more, err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 16<<20 {
		t.Errorf("%d MiB were allocated", took>>20)
	} else {
		t.Logf("%d KiB were allocated", took>>10)
	}
}

func TestMalformedPodTemplateListIsAnError(t *testing.T) {
	for name, answer := range map[string]string{
		"no JSON": "hello", "a list": "[]", "items that are none": `{"items":{}}`, "half of it": `{"items":[{"metadata":`,
		"a wrong item": `{"items":[7]}`,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, answer) // A short answer fails the test.
		}))
		c, err := apiclient.New(&rest.Config{Host: server.URL}, "parley-test/1")
		check.OK(t, err)
		if all, _, err := c.PodTemplates(t.Context(), "ns", "", 7, 1<<20); err == nil || len(all) > 0 {
			t.Errorf("%s: got %d, %v", name, len(all), err)
		}
		server.Close()
	}
}
