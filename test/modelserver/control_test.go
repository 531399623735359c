// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/modelserver"
)

func TestRequestsListedAndClearedOverHTTPOmitKeys(t *testing.T) {
	_, url := serve(t, modelserver.Script{})
	send(t, http.MethodPost, url+chatPath, chat(user), "Authorization", "Bearer sk-secret", "X-Api-Key", "sk-secret",
		"X-Other", "seen")
	send(t, http.MethodPost, url+chatPath, "no JSON")
	response, body := send(t, http.MethodGet, url+"/_control/requests", "")
	var records []modelserver.Record
	check.OK(t, json.Unmarshal([]byte(body), &records))
	if response.StatusCode != http.StatusOK || len(records) != 2 || strings.Contains(body, "sk-secret") {
		t.Fatalf("%d: %s", response.StatusCode, body)
	}
	r := records[0]
	if r.Header.Get("X-Other") != "seen" || string(r.Body) != chat(user) || r.Rule != "echo" || r.Call != 1 ||
		r.Status != 200 || r.Conversation == "" {
		t.Errorf("record %+v", r)
	}
	if string(records[1].Body) != `"no JSON"` || records[1].Status != 400 || records[1].Rule != "" {
		t.Errorf("record of a request that is no JSON: %+v", records[1])
	}
	send(t, http.MethodDelete, url+"/_control/requests", "")
	if _, body := send(t, http.MethodGet, url+"/_control/requests", ""); strings.TrimSpace(body) != "[]" {
		t.Error(body)
	}
}

func TestScriptReplacedOverHTTPStartsFromBeginning(t *testing.T) {
	server, url := serve(t, modelserver.Script{})
	script := `rules: [{times: 1, reply: {steps: [{text: once}]}}, {reply: {steps: [{text: again}]}}]`
	for range 2 {
		if response, body := send(t, http.MethodPut, url+"/_control/script", script); response.StatusCode != http.StatusOK {
			t.Fatal(body)
		}
		for _, want := range []string{"once", "again"} {
			if _, body := send(t, http.MethodPost, url+chatPath, chat(user)); !strings.Contains(body, want) {
				t.Errorf("not %s: %s", want, body)
			}
		}
		if n := len(server.Requests()); n != 2 {
			t.Errorf("%d requests are recorded", n)
		}
	}
	if response,
		body := send(t, http.MethodPut, url+"/_control/script", `rulez: []`); response.StatusCode != http.StatusBadRequest ||
		!strings.Contains(body, "rulez") {
		t.Errorf("%d: %s", response.StatusCode, body)
	}
	if response, _ := send(t, http.MethodGet, url+"/healthz", ""); response.StatusCode != http.StatusOK {
		t.Errorf("health is %d", response.StatusCode)
	}
}

func TestARecordHasTheTimesOfTheAnswer(t *testing.T) {
	const before, between = 30 * time.Millisecond, 10 * time.Millisecond
	server, url := serve(t, modelserver.Script{Rules: []modelserver.Rule{{Reply: modelserver.Reply{
		Steps: []modelserver.Step{modelserver.Say("a", "b", "c")}, DelayBefore: modelserver.Duration(before),
		DelayBetween: modelserver.Duration(between),
	}}}})
	began := time.Now()
	send(t, http.MethodPost, url+chatPath, chat(user))
	check.OK(t, server.WaitUntil(t.Context(), func([]modelserver.Record) bool { return server.InFlight() == 0 }))
	r := server.Requests()[0]
	switch {
	case r.Arrived.Before(began) || r.FirstPart.Before(r.Arrived.Add(before)) || r.Ended.Before(r.FirstPart):
		t.Errorf("the times are in disorder: %+v", r)
	case r.Ended.Sub(r.FirstPart) < 2*between:
		t.Errorf("the parts took %s", r.Ended.Sub(r.FirstPart))
	case r.Parts != 3 || r.Aborted:
		t.Errorf("record %+v", r)
	}
}
