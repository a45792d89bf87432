PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE app_states (
    app_name TEXT PRIMARY KEY,
    state TEXT NOT NULL,
    update_time REAL NOT NULL
);
INSERT INTO app_states VALUES('shop','{"open": true}',1794955176.5730857848);
CREATE TABLE user_states (
    app_name TEXT NOT NULL,
    user_id TEXT NOT NULL,
    state TEXT NOT NULL,
    update_time REAL NOT NULL,
    PRIMARY KEY (app_name, user_id)
);
INSERT INTO user_states VALUES('shop','ada','{"b":{"x":[1,2]},"a":1}',1794955176.7161166668);
CREATE TABLE sessions (
    app_name TEXT NOT NULL,
    user_id TEXT NOT NULL,
    id TEXT NOT NULL,
    state TEXT NOT NULL,
    create_time REAL NOT NULL,
    update_time REAL NOT NULL,
    PRIMARY KEY (app_name, user_id, id)
);
INSERT INTO sessions VALUES('shop','ada','one','{"cart":["tea","milk"]}',1794955176.5730857848,1794955176.7496526241);
INSERT INTO sessions VALUES('bank','bob','empty','{"n": 1}',1794955176.772372961,1794955176.772372961);
CREATE TABLE events (
    id TEXT NOT NULL,
    app_name TEXT NOT NULL,
    user_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    invocation_id TEXT NOT NULL,
    timestamp REAL NOT NULL,
    event_data TEXT NOT NULL,
    PRIMARY KEY (app_name, user_id, session_id, id),
    FOREIGN KEY (app_name, user_id, session_id) REFERENCES sessions(app_name, user_id, id) ON DELETE CASCADE
);
INSERT INTO events VALUES('d24caea5-1bfb-4c20-b466-b08c0101b006','shop','ada','one','i',1794955176.7161166668,'{"content":{"parts":[{"text":"hi"}],"role":"user"},"invocation_id":"i","author":"user","actions":{"state_delta":{"cart":["tea","milk"],"user:b":{"x":[1,2]}},"artifact_delta":{},"requested_auth_configs":{},"requested_tool_confirmations":{}},"node_info":{"path":""},"id":"d24caea5-1bfb-4c20-b466-b08c0101b006","timestamp":1794955176.7161167}');
INSERT INTO events VALUES('5476a7ec-32f3-4f89-ba7c-bc395a20f300','shop','ada','one','i',1794955176.7496526241,'{"content":{"parts":[{"function_call":{"args":{"a":1.5},"name":"f"}},{"inline_data":{"data":"_wA=","mime_type":"image/png"}}],"role":"model"},"invocation_id":"i","author":"model","actions":{"state_delta":{},"artifact_delta":{},"requested_auth_configs":{},"requested_tool_confirmations":{}},"node_info":{"path":""},"long_running_tool_ids":["x"],"id":"5476a7ec-32f3-4f89-ba7c-bc395a20f300","timestamp":1794955176.7496526}');
COMMIT;
