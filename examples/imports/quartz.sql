-- MySQL dump
CREATE TABLE `QRTZ_JOB_DETAILS` (
  `SCHED_NAME` varchar(120) NOT NULL,
  `JOB_NAME` varchar(190) NOT NULL,
  `JOB_GROUP` varchar(190) NOT NULL,
  `DESCRIPTION` varchar(250) DEFAULT NULL,
  `JOB_CLASS_NAME` varchar(250) NOT NULL,
  `IS_DURABLE` varchar(1) NOT NULL,
  `IS_NONCONCURRENT` varchar(1) NOT NULL,
  `IS_UPDATE_DATA` varchar(1) NOT NULL,
  `REQUESTS_RECOVERY` varchar(1) NOT NULL,
  `JOB_DATA` blob,
  PRIMARY KEY (`SCHED_NAME`,`JOB_NAME`,`JOB_GROUP`)
);
INSERT INTO `QRTZ_JOB_DETAILS` VALUES ('main','settle','billing','Settle accounts','com.example.Settle','1','1','0','1',NULL),('main','sweep','DEFAULT',NULL,'com.example.Sweep','0','0','0','0',NULL);
INSERT INTO `QRTZ_TRIGGERS` VALUES ('main','weekdays','billing','settle','billing',NULL,1796000000000,-1,5,'WAITING','CRON',1600000000000,0,NULL,2,''),('main','night','billing','settle','billing',NULL,1796000000000,-1,5,'PAUSED','CRON',1600000000000,0,NULL,0,''),('main','sweeps','DEFAULT','sweep','DEFAULT',NULL,1796000000000,-1,5,'WAITING','SIMPLE',1600000000000,0,NULL,0,'');
INSERT INTO `QRTZ_CRON_TRIGGERS` VALUES ('main','weekdays','billing','0 15 10 ? * 2-6','Europe/Berlin'),('main','night','billing','0 0 2 * * ?','Europe/Berlin');
INSERT INTO `QRTZ_SIMPLE_TRIGGERS` VALUES ('main','sweeps','DEFAULT',-1,60000,12);
