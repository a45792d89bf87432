PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE adk_memory_metadata (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
);
INSERT INTO adk_memory_metadata VALUES('schema_version','1');
CREATE TABLE memory_events (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  app_name TEXT NOT NULL,
  user_id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  event_id TEXT NOT NULL,
  author TEXT NOT NULL,
  timestamp REAL NOT NULL,
  content_json TEXT NOT NULL,
  search_text TEXT NOT NULL,
  UNIQUE(app_name, user_id, session_id, event_id)
);
INSERT INTO memory_events VALUES(1,'shop','ada','one','e0','user',100.0,'{"parts":[{"text":"I like tea number 0"}],"role":"user"}','i like tea number 0');
INSERT INTO memory_events VALUES(2,'shop','ada','one','e1','user',101.0,'{"parts":[{"text":"I like tea number 1"}],"role":"user"}','i like tea number 1');
INSERT INTO memory_events VALUES(3,'shop','ada','one','e2','user',102.0,'{"parts":[{"text":"I like tea number 2"}],"role":"user"}','i like tea number 2');
INSERT INTO memory_events VALUES(4,'shop','bob','__unknown_session_id__','e0','user',100.0,'{"parts":[{"text":"I like tea number 0"}],"role":"user"}','i like tea number 0');
COMMIT;
