PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE adk_internal_metadata (
	"key" VARCHAR(128) NOT NULL, 
	value VARCHAR(256) NOT NULL, 
	PRIMARY KEY ("key")
);
INSERT INTO adk_internal_metadata VALUES('schema_version','1');
CREATE TABLE sessions (
	app_name VARCHAR(128) NOT NULL, 
	user_id VARCHAR(128) NOT NULL, 
	id VARCHAR(128) NOT NULL, 
	state TEXT NOT NULL, 
	create_time DATETIME NOT NULL, 
	update_time DATETIME NOT NULL, 
	PRIMARY KEY (app_name, user_id, id)
);
INSERT INTO sessions VALUES('shop','ada','one','{"cart": ["tea", "milk"]}','2026-11-17 22:30:29.004507','2026-11-17 22:30:29.141244');
INSERT INTO sessions VALUES('bank','bob','empty','{"n": 1}','2026-11-17 22:30:29.272445','2026-11-17 22:30:29.272445');
CREATE TABLE app_states (
	app_name VARCHAR(128) NOT NULL, 
	state TEXT NOT NULL, 
	update_time DATETIME NOT NULL, 
	PRIMARY KEY (app_name)
);
INSERT INTO app_states VALUES('shop','{"open": true}','2026-11-17 22:30:29');
INSERT INTO app_states VALUES('bank','{}','2026-11-17 22:30:29');
CREATE TABLE user_states (
	app_name VARCHAR(128) NOT NULL, 
	user_id VARCHAR(128) NOT NULL, 
	state TEXT NOT NULL, 
	update_time DATETIME NOT NULL, 
	PRIMARY KEY (app_name, user_id)
);
INSERT INTO user_states VALUES('shop','ada','{"a": 1, "b": {"x": [1, 2]}}','2026-11-17 22:30:29');
INSERT INTO user_states VALUES('bank','bob','{}','2026-11-17 22:30:29');
CREATE TABLE events (
	id VARCHAR(128) NOT NULL, 
	app_name VARCHAR(128) NOT NULL, 
	user_id VARCHAR(128) NOT NULL, 
	session_id VARCHAR(128) NOT NULL, 
	invocation_id VARCHAR(256) NOT NULL, 
	timestamp DATETIME NOT NULL, 
	event_data TEXT, 
	PRIMARY KEY (id, app_name, user_id, session_id), 
	FOREIGN KEY(app_name, user_id, session_id) REFERENCES sessions (app_name, user_id, id) ON DELETE CASCADE
);
INSERT INTO events VALUES('af2c5c66-f9dd-409b-8811-55ff99153ca6','shop','ada','one','i','2026-11-17 22:30:29.066509','{"content": {"parts": [{"text": "hi"}], "role": "user"}, "invocation_id": "i", "author": "user", "actions": {"state_delta": {"cart": ["tea", "milk"], "user:b": {"x": [1, 2]}}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": ""}, "id": "af2c5c66-f9dd-409b-8811-55ff99153ca6", "timestamp": 1794954629.0665092}');
INSERT INTO events VALUES('186358fe-6888-45d7-9617-86954a9bd974','shop','ada','one','i','2026-11-17 22:30:29.141244','{"content": {"parts": [{"function_call": {"args": {"a": 1.5}, "name": "f"}}, {"inline_data": {"data": "_wA=", "mime_type": "image/png"}}], "role": "model"}, "invocation_id": "i", "author": "model", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": ""}, "long_running_tool_ids": ["x"], "id": "186358fe-6888-45d7-9617-86954a9bd974", "timestamp": 1794954629.141244}');
CREATE INDEX idx_events_app_user_session_ts_id ON events (app_name, user_id, session_id, timestamp DESC, id DESC);
CREATE INDEX idx_events_app_user_session_ts ON events (app_name, user_id, session_id, timestamp DESC);
COMMIT;
