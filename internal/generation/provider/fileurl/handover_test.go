// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package fileurl_test

import (
	"net/http"
	"strings"
	"testing"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/provider/fault"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/providertest"
	"parley.dev/parley/test/modelserver"
)

// refusesTimes is a rule that refuses so many requests in these words; 0: all.
func refusesTimes(times int, message string) modelserver.Rule {
	return modelserver.Rule{Times: times,
		Reply: modelserver.Reply{Fault: &modelserver.Fault{Kind: modelserver.FaultStatus, Status: http.StatusBadRequest,
			Message: message}}}
}

// handedIn are the names of the files that a body hands over.
func handedIn(body string) string {
	names := ""
	for _, name := range []string{"a", "b", "c"} {
		if strings.Contains(body, "https://files.example.com/"+name+".png") {
			names += name
		}
	}
	return names
}

func TestUnfetchableFileIsShownAsMissing(t *testing.T) {
	three := []v1beta1.MessageFile{at("a.png", "image/png"), at("b.png", "image/png"), at("c.png", "image/png")}
	const unnamed = "Unable to download the file. Please verify the URL and try again."
	for name, spec := range fetchers {
		for what, c := range map[string]struct {
			files []v1beta1.MessageFile
			rule  modelserver.Rule
			// want are the files that each request hands over.
			want string
		}{
			"the only one":              {three[:1], refusesTimes(1, unnamed), "a||"},
			"one that is named":         {three, refusesTimes(1, "Error while downloading "+three[1].URL+"."), "abc|ac|ac"},
			"the oldest, not named":     {three, refusesTimes(1, unnamed), "abc|bc|bc"},
			"two of them":               {three, refusesTimes(2, unnamed), "abc|bc|c|c"},
			"the newest":                {three, refusesTimes(3, unnamed), "abc|bc|c|ab|ab"},
			"all of them":               {three, refusesTimes(4, unnamed), "abc|bc|c|ab||"},
			"one that it does not take": {three[:1], refusesTimes(1, "Could not process image"), "a||"},
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				f := newFetcher(t, spec, c.rule)
				for range 2 { // The second call knows.
					text, warnings, err := f.ask(t, f.asked(c.files...))
					if err != nil || text != "ok" || len(warnings) == 0 || !strings.HasPrefix(warnings[0], "file ") {
						t.Fatalf("got %q, warnings %q: %v", text, warnings, err)
					}
				}
				var got []string
				for _, body := range f.sent {
					got = append(got, handedIn(body))
				}
				check.Equal(t, "handed over", c.want, strings.Join(got, "|"))
				if last := f.sent[len(f.sent)-1]; !strings.Contains(last,
					"cannot be shown: the provider of the model could not fetch it from its URL, or does not take it.") {
					t.Errorf("sent %s", last)
				}
			})
		}
	}
}

func TestOtherErrorsAreNotTriedAgainWithoutFiles(t *testing.T) {
	for name, spec := range fetchers {
		for what, fault := range map[string]modelserver.Fault{
			"a rate":    {Kind: modelserver.FaultStatus, Status: http.StatusTooManyRequests},
			"a setting": {Kind: modelserver.FaultStatus, Problem: modelserver.ProblemSetting},
			"a wrong path": {Kind: modelserver.FaultStatus, Status: http.StatusNotFound,
				Message: "The requested URL was not found on this server."},
			"a key":                   {Kind: modelserver.FaultStatus, Status: http.StatusUnauthorized},
			"a reply that breaks off": {Kind: modelserver.FaultCut, After: new(1)},
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				f := newFetcher(t, spec,
					modelserver.Rule{Reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Say("a", "b")}, Fault: &fault}})
				if _, _, err := f.ask(t, f.asked(at("a.png", "image/png"))); err == nil || len(f.sent) != 1 {
					t.Errorf("%d requests, error %v", len(f.sent), err)
				}
			})
		}
	}
}

func TestFileRefusedForeverFailsTheRequest(t *testing.T) {
	for name, spec := range fetchers {
		t.Run(name, func(t *testing.T) {
			f := newFetcher(t, spec, refusesTimes(0, "The image is bad."))
			_, _, err := f.ask(t, f.asked(at("a.png", "image/png")))
			e := fault.Classify(err, fault.Subject{Config: "main", Spec: &f.spec, Key: providertest.Key})
			check.Equal(t, "reason, sent", []any{v1beta1.ErrorRequestRejected, 2}, []any{e.Reason, len(f.sent)})
		})
	}
}
