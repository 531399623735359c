// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"sigs.k8s.io/yaml"
)

// Parse reads a script file, YAML or JSON. A field that it does not know, or a rule that cannot be carried out, is an
// error.
func Parse(file []byte) (Script, error) {
	var s Script
	if err := yaml.UnmarshalStrict(file, &s); err != nil {
		return Script{}, fmt.Errorf("read the script: %w", err)
	}
	if _, err := compile(s); err != nil {
		return Script{}, err
	}
	return s, nil
}

// UnmarshalJSON reads a plain string as the Value.
func (t *Text) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		*t = Text{}
		return json.Unmarshal(data, &t.Value)
	}
	type plain Text
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode((*plain)(t))
}

// UnmarshalJSON reads the form of time.ParseDuration.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var s string
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("read a duration such as \"30ms\": %w", err)
	}
	v, err := time.ParseDuration(s)
	if err != nil {
		return err
	}
	*d = Duration(v)
	return nil
}

// MarshalJSON writes the form of time.ParseDuration.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

func (m Match) validate() error {
	switch m.Protocol {
	case "", OpenAIChat, OpenAIResponses, Anthropic, Gemini, Bedrock:
	default:
		return fmt.Errorf("unknown protocol %q", m.Protocol)
	}
	if m.Call < 0 || m.MinToolResults < 0 {
		return errors.New("call and minToolResults cannot be negative")
	}
	return nil
}

func (r Reply) validate() error {
	switch r.Finish {
	case "", FinishStop, FinishLength, FinishToolCalls, FinishContentFilter:
	default:
		return fmt.Errorf("unknown finish %q", r.Finish)
	}
	if r.DelayBefore < 0 || r.DelayBetween < 0 {
		return errors.New("a delay cannot be negative")
	}
	if r.Fault == nil {
		return nil
	}
	return r.Fault.validate()
}

func (f Fault) validate() error {
	switch f.Kind {
	case FaultStatus:
		if f.Problem != "" {
			break
		}
		if f.Status < http.StatusBadRequest || f.Status > 599 {
			return fmt.Errorf("a fault of kind Status needs the status of an HTTP error, not %d", f.Status)
		}
	case FaultContextTooLong, FaultReset, FaultCut, FaultEnd, FaultError, FaultFailed, FaultHang:
	default:
		return fmt.Errorf("unknown fault kind %q", f.Kind)
	}
	if f.After != nil && *f.After < 0 {
		return errors.New("after cannot be negative")
	}
	return f.Problem.validate()
}

// count is how many of the conditions hold.
func count(conditions ...bool) (n int) {
	for _, holds := range conditions {
		if holds {
			n++
		}
	}
	return n
}

func (s Step) validate() error {
	if count(s.Text != nil, s.Reasoning != nil, len(s.ToolCalls) > 0, s.Search != nil) != 1 {
		return errors.New("a step has exactly one of text, reasoning, toolCalls and search")
	}
	for _, c := range s.ToolCalls {
		if c.Name == "" {
			return errors.New("a tool call needs a name")
		}
		if len(c.Arguments) > 0 && !json.Valid(c.Arguments) {
			return fmt.Errorf("the arguments of the call of %s are not JSON; to send malformed ones, give them as a JSON string",
				c.Name)
		}
	}
	return nil
}

func (t Text) validate() error {
	if count(t.Value != "", t.Chunks != nil, t.Repeat != nil) > 1 {
		return errors.New("a text has one of value, chunks and repeat")
	}
	if t.PieceBytes < 0 || t.PieceWords < 0 || t.PieceBytes > 0 && t.PieceWords > 0 {
		return errors.New("a text is cut by pieceBytes or by pieceWords")
	}
	if t.Chunks != nil && t.PieceBytes+t.PieceWords > 0 {
		return errors.New("chunks are not cut any further")
	}
	if t.Repeat != nil && (t.Repeat.Text == "" || t.Repeat.Bytes <= 0) {
		return errors.New("repeat needs a text and a number of bytes")
	}
	return nil
}
